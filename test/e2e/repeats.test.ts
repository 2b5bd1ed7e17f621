import { afterEach, beforeEach, expect, test } from 'vitest'
import { decodeCommitMetadata } from '../../src/kafka/wire/commit-metadata.ts'
import { basic, post } from '../support/gateway.ts'
import { otherProgram } from '../support/kafka.ts'
import { answer, inTurn, neverAnswer, type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { type SluiceProcess, startSluice } from '../support/worker-process.ts'
import { newIds, type Scene, setScene } from './scene.ts'

let receiver: Receiver
let scene: Scene
let running: SluiceProcess[]

beforeEach(async () => {
  receiver = await startReceiver({
    '/hook': answer(200),
    '/hangs': inTurn(neverAnswer, answer(200)),
  })
  scene = await setScene({
    catalog: {
      sources: [{ id: 'shop', writeKeys: ['KEY'] }, { id: 'app' }, { id: 'hanging' }],
      destinations: [
        { id: 'crm', sources: ['shop', 'app'], hooks: [{ url: `${receiver.origin}/hook` }] },
        { id: 'slow', sources: ['hanging'], hooks: [{ url: `${receiver.origin}/hangs` }] },
      ],
    },
    variables: { SLUICE_DELIVERY_TIMEOUT: '1m', SLUICE_KAFKA_COMMIT_INTERVAL: '100ms' },
  })
  running = []
})

afterEach(async () => {
  await Promise.all(running.map((one) => one.kill()))
  scene.close()
  await receiver.stop()
})

async function start(role = 'worker'): Promise<SluiceProcess> {
  const started = await startSluice(scene.variables, { role })
  running.push(started)
  return started
}

/** Returns how often each message arrived at a path. */
function arrivals(path = '/hook'): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { body } of receiver.requestsTo(path)) {
    const { messageId } = JSON.parse(String(body))
    counts[messageId] = (counts[messageId] ?? 0) + 1
  }
  return counts
}

const allIsCommitted = () => until('all is committed', async () => (await scene.lag()) === 0)

test('a message that is produced twice is delivered once, of each source', async () => {
  const worker = await start()
  const [twice = '', inOneBatch = '', other = ''] = newIds(3)
  await scene.send('shop', [twice, inOneBatch, inOneBatch])
  await until('it is delivered', () => arrivals()[twice] === 1)
  await scene.send('shop', [twice])
  await scene.send('app', [twice, other])
  await allIsCommitted()
  expect(arrivals()).toEqual({ [twice]: 2, [inOneBatch]: 1, [other]: 1 })
  expect(await worker.metric('sluice_repeats_dropped_total')).toBe(2)
  expect(await worker.metric('sluice_repeats_remembered')).toBe(4)
  expect(await worker.metric('sluice_repeats_reach_seconds')).toBe(86_400)
})

test('a message that a client sends twice through the gateway is delivered once', async () => {
  const [worker, gateway] = await Promise.all([start(), start('gateway')])
  const [messageId = ''] = newIds(1)
  const url = `http://127.0.0.1:${gateway.gatewayPort}/v1/track`
  for (let times = 0; times < 3; times++) {
    const reply = await post(url, { userId: 'u1', event: 'E', messageId }, basic('KEY'))
    expect(reply.status).toBe(200)
  }
  await until('repeats are dropped', async () => (await worker.metric('sluice_repeats_dropped_total')) === 2)
  await allIsCommitted()
  expect(arrivals()).toEqual({ [messageId]: 1 })
})

test('a restart forgets: a repeat that comes after it is delivered', async () => {
  const first = await start()
  const [id = ''] = newIds(1)
  await scene.send('shop', [id])
  await allIsCommitted()
  await first.terminate()
  const second = await start()
  await scene.send('shop', [id])
  await allIsCommitted()
  expect(arrivals()).toEqual({ [id]: 2 })
  expect(await second.metric('sluice_repeats_dropped_total')).toBe(0)
})

test('what units that went to another worker and came back had seen is forgotten, and nothing else', async () => {
  const first = await start()
  const ids = newIds(60)
  await scene.send('shop', ids)
  await allIsCommitted()
  const second = await start()
  await second.terminate()
  await scene.send('shop', ids)
  await allIsCommitted()
  const again = Object.values(arrivals()).filter((count) => count === 2).length
  expect(Object.values(arrivals()).filter((count) => count === 1)).toHaveLength(ids.length - again)
  expect(again).toBeGreaterThan(0)
  expect(again).toBeLessThan(ids.length)
  expect(await first.metric('sluice_repeats_dropped_total')).toBe(ids.length - again)
})

/** Returns the number of offsets above the committed offsets that the group's commits record as settled. */
async function settledAbove(): Promise<number> {
  const admin = otherProgram().admin()
  await admin.connect()
  try {
    const topics = [`${scene.prefix}events`]
    const fetched = await admin.fetchOffsets({ groupId: `${scene.prefix}group`, topics })
    return fetched
      .flatMap(({ partitions }) => partitions)
      .reduce(
        (sum, { offset, metadata }) =>
          sum + (decodeCommitMetadata(Number(offset), metadata)?.settledAbove.length ?? 0),
        0,
      )
  } finally {
    await admin.disconnect()
  }
}

test('a worker that is killed with the first of two in flight loses neither, though the second is settled', async () => {
  const first = await start()
  const [id = ''] = newIds(1)
  await scene.send('hanging', [id, id])
  await until('the first is in flight', () => arrivals('/hangs')[id] === 1)
  await until('the second is settled, for the group too', async () => (await settledAbove()) === 1)
  expect(await first.metric('sluice_repeats_dropped_total')).toBe(1)
  await first.kill()
  await start()
  await allIsCommitted()
  expect(arrivals('/hangs')).toEqual({ [id]: 2 })
})

test('records that come again after a kill are no repeats of themselves', async () => {
  const ids = newIds(500)
  await scene.send('shop', [...ids, ...ids])
  const first = await start()
  await until('some are delivered', () => receiver.requests.length > 50)
  await first.kill()
  await start()
  await allIsCommitted()
  const counts = Object.entries(arrivals())
  expect(counts.map(([id]) => id).toSorted()).toEqual(ids.toSorted())
  // A message arrives at most twice. It arrives twice if it was in flight when the worker was killed, or
  // settled and not yet committed.
  expect(counts.filter(([, count]) => count > 2)).toEqual([])
})
