import { afterEach, beforeEach, expect, test } from 'vitest'
import { withAdmin } from '../../../src/kafka/cluster/with-admin.ts'
import { type GroupCommit, readCommits } from '../../../src/kafka/other-groups/group-state.ts'
import { decodeCommitMetadata } from '../../../src/kafka/wire/commit-metadata.ts'
import { basic, post } from '../../support/gateway.ts'
import { otherProgram } from '../../support/kafka.ts'
import { answer, inTurn, neverAnswer, type Receiver, startReceiver } from '../../support/receiver.ts'
import { until } from '../../support/until.ts'
import { writeCommit } from '../../support/write-commit.ts'
import { type SluiceProcess, startSluice } from '../../support/worker-process.ts'
import { newIds, type Scene, setScene } from '../scene.ts'

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

/** Returns the fields of the line about what a worker has read of earlier messages. */
async function rebuilt(worker: SluiceProcess): Promise<Record<string, unknown> | undefined> {
  const log = await worker.wholeLog()
  return log.find(({ msg }) => msg === 'read the end of events, to recognize repeats of earlier messages')
}

test('a repeat of a message from before a restart, a kill or a handover is dropped', async () => {
  const ids = newIds(60)
  const once = Object.fromEntries(ids.map((id) => [id, 1]))
  const sendAgain = async (): Promise<void> => {
    await scene.send('shop', ids)
    await allIsCommitted()
    expect(arrivals()).toEqual(once)
  }
  const first = await start()
  await sendAgain()
  await first.terminate()
  const second = await start()
  await sendAgain()
  // The first copies were passed on. What was dropped as a repeat isn't remembered once more.
  expect(await rebuilt(second)).toMatchObject({ records: 60, remembered: 60 })
  expect(await second.metric('sluice_repeats_rebuild_records_total', { outcome: 'remembered' })).toBe(60)
  await second.kill()
  const third = await start()
  await sendAgain()
  expect(await rebuilt(third)).toMatchObject({ records: 120, remembered: 60 })
  expect(await third.metric('sluice_repeats_dropped_total')).toBe(60)
  const fourth = await start()
  await sendAgain()
  expect(await fourth.metric('sluice_repeats_dropped_total')).toBeGreaterThan(0)
  await fourth.terminate()
  await sendAgain()
})

test('a message whose first copy went nowhere is delivered after the catalog is corrected, over a restart too', async () => {
  const hooks = [{ url: `${receiver.origin}/hook` }]
  const catalogWith = (isRight: boolean) => ({
    sources: [
      { id: 'shop', enabled: isRight },
      { id: 'app' },
      { id: 'none' },
      ...(isRight ? [{ id: 'late' }] : []),
    ],
    destinations: [
      {
        id: 'crm',
        sources: ['shop', 'app', ...(isRight ? ['none', 'late'] : [])],
        hooks,
        ...(!isRight && { filter: { types: ['page'] } }),
      },
    ],
  })
  const sources = ['shop', 'app', 'none', 'late']
  const ids = newIds(sources.length * 3)
  const send = async (round: number): Promise<void> => {
    for (const [n, source] of sources.entries()) await scene.send(source, ids.slice(3 * n, 3 * n + 1 + round))
    await allIsCommitted()
  }
  scene.catalog.rewrite(catalogWith(false))
  const first = await start()
  await send(0)
  await send(1)
  expect(arrivals()).toEqual({})
  scene.catalog.rewrite(catalogWith(true))
  await until('the catalog has changed', () => first.log.some(({ msg }) => msg === 'the catalog has changed'))
  await first.kill()
  const second = await start()
  expect(await rebuilt(second)).toMatchObject({ remembered: 0 })
  await send(2)
  expect(arrivals()).toEqual(Object.fromEntries(ids.map((id) => [id, 1])))
})

test('what is behind a commit that somebody has moved, or behind a bound, is not known', async () => {
  const [id = ''] = newIds(1)
  const first = await start()
  await scene.send('shop', [id])
  await scene.send('shop', [id])
  await allIsCommitted()
  expect(arrivals()).toEqual({ [id]: 1 })
  await first.terminate()
  const committed = await commits()
  for (const { topic, partition, offset, metadata } of committed) {
    if (Number(offset) === 0) continue
    const groupId = `${scene.prefix}group`
    await writeCommit({ groupId, topic, partition, offset: Number(offset) - 1, metadata })
  }
  const second = await start()
  await allIsCommitted()
  // Somebody wanted the second record, so it is delivered, though the first was.
  expect(arrivals()).toEqual({ [id]: 2 })
  expect(await rebuilt(second)).toBeUndefined()
  await second.terminate()
  scene.variables['SLUICE_REPEATS_REBUILD_TIME'] = '0s'
  const third = await start()
  await scene.send('shop', [id])
  await allIsCommitted()
  expect(arrivals()).toEqual({ [id]: 3 })
  expect(await rebuilt(third)).toBeUndefined()
})

/** Returns the group's commits for `events`. */
function commits(): Promise<GroupCommit[]> {
  return withAdmin(otherProgram(), (admin) =>
    readCommits(admin, `${scene.prefix}group`, [`${scene.prefix}events`]),
  )
}

/** Returns the number of offsets above the committed offsets that the group's commits record as settled. */
async function settledAbove(): Promise<number> {
  return (await commits()).reduce(
    (sum, { offset, metadata }) =>
      sum + (decodeCommitMetadata(Number(offset), metadata)?.settledAbove.length ?? 0),
    0,
  )
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
