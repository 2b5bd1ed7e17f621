import { randomUUID } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { basic, startGateway } from '../../support/gateway.ts'
import { setQuotas } from '../../support/quotas.ts'
import { until } from '../../support/until.ts'

/** Returns a batch of messages of 2 KB. */
function batchOf(count: number) {
  const properties = { text: 'x'.repeat(2_000) }
  return {
    batch: Array.from({ length: count }, () => ({
      type: 'track',
      userId: 'u1',
      event: 'E',
      messageId: randomUUID(),
      properties,
    })),
  }
}

test('while a quota of the broker is used up, requests are refused at once with the time to wait, and the gateway stays ready', async () => {
  const clientId = `slow-${randomUUID()}`
  await setQuotas(clientId, { producer_byte_rate: 20_000 })
  const gateway = await startGateway({
    variables: {
      SLUICE_KAFKA_CLIENT_ID: clientId,
      SLUICE_TOPICS_PARTITIONS: '1',
      // What takes longer isn't waited for.
      SLUICE_GATEWAY_ACK_TIMEOUT: '1500ms',
    },
  })
  onTestFinished(() => gateway.stop())
  // The broker writes this batch and answers, and then reads nothing for some seconds.
  const large = batchOf(170)
  expect((await gateway.post('/v1/batch', large, basic('KEY'))).status).toBe(200)
  const small = batchOf(1)
  const startMs = performance.now()
  const refusals: number[] = []
  const tookMs: number[] = []
  await until('a message is taken again', async () => {
    const askedMs = performance.now()
    const { status, body, headers } = await gateway.post('/v1/batch', small, basic('KEY'))
    if (status === 200) return true
    tookMs.push(performance.now() - askedMs)
    expect({ status, code: body['code'] }).toEqual({ status: 503, code: 'overloaded' })
    refusals.push(Number(headers.get('retry-after')))
    expect((await gateway.readiness()).status).toBe(200)
    return false
  })
  const tookS = (performance.now() - startMs) / 1_000
  // A request that waited for Kafka would take at least 1.5 s.
  expect(Math.min(...tookMs)).toBeLessThan(1_000)
  expect(tookS).toBeGreaterThan(3)
  expect(refusals[0]).toBeGreaterThan(3)
  expect(refusals[0]).toBeLessThanOrEqual(Math.ceil(tookS) + 3)
  const ids = [...large.batch, ...small.batch].map(({ messageId }) => messageId)
  const written = (await gateway.read('events')).map(({ value }) => String(value['messageId']))
  expect(written.toSorted()).toEqual(ids.toSorted())
  expect(await gateway.process.metric('sluice_gateway_produce_failures_total')).toBe(0)
})
