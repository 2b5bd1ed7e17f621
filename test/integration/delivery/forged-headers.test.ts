import { expect, onTestFinished, test } from 'vitest'
import { newIds, setScene, unhurried } from '../../e2e/scene.ts'
import { readLog } from '../../support/delivery-log.ts'
import { produce, readAll } from '../../support/kafka.ts'
import { answer, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { runSluice, startSluice } from '../../support/worker-process.ts'

/** A worker that delivers the source `shop`. The delivery log keeps one success a second of each destination. */
async function open() {
  const receiver = await startReceiver(answer(200))
  onTestFinished(() => receiver.stop())
  const scene = await setScene({
    catalog: {
      sources: [{ id: 'shop' }],
      destinations: [{ id: 'crm', sources: ['shop'], hooks: [{ url: receiver.origin }] }],
    },
    variables: { ...unhurried, SLUICE_ATTEMPTS_SUCCESSES: '1' },
  })
  onTestFinished(() => scene.close())
  const worker = await startSluice(scene.variables)
  onTestFinished(async () => void (await worker.terminate()))
  const send = (messageId: string, headers: Record<string, string | string[]>): Promise<void> =>
    produce(`${scene.prefix}events`, [eventOf(messageId, headers)])
  return { receiver, scene, worker, send }
}

function eventOf(messageId: string, headers: Record<string, string | string[]>) {
  const value = JSON.stringify({ type: 'track', event: 'E', userId: 'u1', messageId })
  return { key: 'u1', value, headers }
}

test('events of a producer that says they are replayed are new: the log samples them, and their requests name no replay', async () => {
  const { receiver, scene, worker } = await open()
  const count = 1_000
  const forged = { 'source-id': 'shop', 'replay-job': 'job-1', 'first-seen': '1' }
  await produce(
    `${scene.prefix}events`,
    newIds(count).map((id) => eventOf(id, forged)),
  )
  await until('all came', () => receiver.requests.length === count)
  expect(receiver.requests.filter(({ headers }) => 'x-sluice-replay' in headers)).toEqual([])
  await worker.terminate()
  const rows = await readLog(`${scene.prefix}attempts`)
  expect(rows.reduce((sum, { weight }) => sum + weight, 0)).toBe(count)
  expect(rows.length).toBeLessThan(count / 4)
  expect(new Set(rows.map(({ job }) => job))).toEqual(new Set(['']))
})

test('worker, dead letters, delivery log and replay agree about a source-id that is repeated or empty: the first value counts', async () => {
  const { receiver, scene, worker, send } = await open()
  await send('of-shop', { 'source-id': ['shop', 'other'] })
  await send('of-other', { 'source-id': ['other', 'shop'] })
  await send('of-none', { 'source-id': ['', 'shop'] })
  await until('it came', () => receiver.requests.length > 0)
  const letters = await until('two are dead', async () => {
    const found = await readAll(`${scene.prefix}dead-letters`)
    return found.length === 2 ? found : undefined
  })
  expect(
    letters.map(({ value, headers }) => [messageIdOf(value), headers['reason'], headers['source-id']]),
  ).toEqual(
    expect.arrayContaining([
      ['of-other', 'unknown_source', 'other'],
      ['of-none', 'no_source', undefined],
    ]),
  )
  const { stdout } = await runSluice(
    ['replay', 'events', '--destination', 'crm', '--source', 'shop', '--dry-run'],
    scene.variables,
  )
  expect(stdout).toContain('found    1 record,')
  await worker.terminate()
  expect(receiver.requests.map(({ body }) => messageIdOf(body))).toEqual(['of-shop'])
  const delivered = (await readLog(`${scene.prefix}attempts`)).filter(({ kind }) => kind === 'attempted')
  expect(delivered).toMatchObject([{ messageId: 'of-shop', source: 'shop' }])
})

function messageIdOf(body: Buffer | string | null): unknown {
  const message: unknown = JSON.parse(String(body))
  return typeof message === 'object' && message !== null && 'messageId' in message
    ? message.messageId
    : undefined
}
