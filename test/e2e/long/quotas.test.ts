import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CountingReceiver, startCountingReceiver } from '../../support/counting-receiver.ts'
import { countRecords, produce, readAll } from '../../support/kafka.ts'
import { setQuotas } from '../../support/quotas.ts'
import { until } from '../../support/until.ts'
import { startSluice } from '../../support/worker-process.ts'
import { newIds, type Scene, setScene, unhurried } from '../scene.ts'

const clientId = `slow-${randomUUID()}`
let receiver: CountingReceiver
let scene: Scene

beforeAll(async () => {
  receiver = await startCountingReceiver()
  await receiver.behave('/down', { status: 500 })
  scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url: receiver.url('/down') }] }],
    },
    variables: { ...unhurried, SLUICE_KAFKA_CLIENT_ID: clientId, SLUICE_RETRY_LADDER: '10m' },
  })
})

afterAll(async () => {
  scene.close()
  await receiver.stop()
})

test('while a quota for writing is used up, the worker is ready, stays in the group, and writes each retry once', async () => {
  const worker = await startSluice(scene.variables)
  // After its first answer, the broker reads nothing for longer than a request may take.
  await setQuotas(clientId, { producer_byte_rate: 32_000 })
  const ids = newIds(500)
  const messages = ids.map((messageId) => ({
    key: messageId,
    value: JSON.stringify({
      type: 'track',
      messageId,
      userId: messageId,
      event: 'Sent',
      properties: { text: 'x'.repeat(2_000) },
    }),
    headers: { 'source-id': 'shop' },
  }))
  await produce(`${scene.prefix}events`, messages)
  const topic = `${scene.prefix}retry.10m`
  const states = new Set<string>()
  await until(
    'all retries are written',
    async () => {
      const { status } = await fetch(`http://127.0.0.1:${worker.httpPort}/readyz`)
      states.add(`${status}`)
      return (await countRecords(topic)) >= ids.length
    },
    { timeoutMs: 60_000 },
  )
  const throttledS = await worker.metric('sluice_kafka_throttled_seconds_total', { request: 'produce' })
  const [failures, rebalances] = await Promise.all([
    worker.metric('sluice_produce_failures_total'),
    worker.metric('sluice_rebalances_total'),
  ])
  await worker.terminate()
  const written = (await readAll(topic)).map(({ key }) => key ?? '')
  expect(written.toSorted()).toEqual(ids.toSorted())
  expect(throttledS).toBeGreaterThan(15)
  expect([...states]).toEqual(['200'])
  expect({ failures, rebalances }).toEqual({ failures: 0, rebalances: 0 })
})
