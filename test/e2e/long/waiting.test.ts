import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { withAdmin } from '../../../src/kafka/cluster/with-admin.ts'
import { type CountingReceiver, startCountingReceiver } from '../../support/counting-receiver.ts'
import { countRecords, otherProgram, readAll } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import {
  applyTopics,
  type CatalogData,
  runToEnd,
  type SluiceProcess,
  startSluice,
} from '../../support/worker-process.ts'
import { newIds, type Scene, setScene } from '../scene.ts'

/** What waits in the queues of destinations, when workers come and go, and when somebody changes Kafka. */

let receiver: CountingReceiver

beforeEach(async () => {
  receiver = await startCountingReceiver()
})

afterEach(() => receiver.stop())

function catalogOf(destination: object): CatalogData {
  const crm = { id: 'crm', sources: ['shop'], hooks: [{ url: receiver.url('/crm') }], ...destination }
  return { sources: [{ id: 'shop' }], destinations: [crm] }
}

async function open(destination: object): Promise<Scene> {
  const scene = await setScene({
    catalog: catalogOf(destination),
    variables: { SLUICE_REPEATS_WINDOW: '0s' },
  })
  onTestFinished(() => scene.close())
  return scene
}

async function start(scene: Scene, variables: Record<string, string> = {}): Promise<SluiceProcess> {
  const worker = await startSluice({ ...scene.variables, ...variables })
  onTestFinished(async () => {
    if (worker.isRunning) await worker.kill()
  })
  return worker
}

async function allWait(scene: Scene, count: number): Promise<void> {
  await until('all wait', async () => (await countRecords(`${scene.prefix}waiting`)) >= count)
}

function waitingAt(worker: SluiceProcess): Promise<number> {
  return worker.metric('sluice_waiting_messages')
}

test('workers that join and leave while messages wait repeat none of them, and lose none', async () => {
  // All would take half a minute, which is longer than the start of a worker on a busy machine.
  const scene = await open({ rateLimit: { perSecond: 30 } })
  const first = await start(scene)
  const ids = newIds(900)
  await scene.send('shop', ids)
  await until('many wait', async () => (await waitingAt(first)) > 300)
  const second = await start(scene)
  await until('the second has some of them', async () => (await waitingAt(second)) > 0)
  await first.terminate()
  await until('all came', async () => (await receiver.count('/crm')).distinct >= ids.length, {
    timeoutMs: 90_000,
  })
  expect(await receiver.count('/crm')).toMatchObject({ distinct: ids.length, repeats: 0 })
  await until('all are done', async () => (await waitingAt(second)) === 0)
})

test('a commit of `waiting` that a tool has reset is gone on from, whatever was done', async () => {
  const scene = await open({ state: 'paused' })
  const worker = await start(scene)
  const ids = newIds(50)
  await scene.send('shop', ids)
  await allWait(scene, ids.length)
  scene.catalog.rewrite(catalogOf({}))
  await until('all came', async () => (await receiver.count('/crm')).distinct >= ids.length)
  // Sluice has not caused the time that they have waited, so they don't count for its latency.
  const first = 'sluice_append_to_first_attempt_seconds_count'
  expect(await worker.metric(first, { way: 'parked' })).toBe(ids.length)
  expect(await worker.metric(first, { way: 'direct' })).toBe(0)
  await worker.terminate()
  const topic = `${scene.prefix}waiting`
  const groupId = String(scene.variables['SLUICE_KAFKA_GROUP_ID'])
  const partitions = Array.from({ length: 6 }, (_, partition) => ({
    partition,
    // The first tool names the start of the log, and the second one an offset.
    offset: partition % 2 === 0 ? '-2' : '0',
  }))
  await withAdmin(otherProgram(), (admin) => admin.setOffsets({ groupId, topic, partitions }))
  await start(scene)
  await until('all came again', async () => (await receiver.count('/crm')).requests >= 2 * ids.length)
  expect(await receiver.count('/crm')).toMatchObject({ requests: 2 * ids.length, distinct: ids.length })
})

test('a topic `waiting` that was deleted and created again takes messages as before', async () => {
  const scene = await open({ state: 'paused' })
  const worker = await start(scene)
  const before = newIds(50)
  await scene.send('shop', before)
  await allWait(scene, before.length)
  scene.catalog.rewrite(catalogOf({}))
  await until('all came', async () => (await receiver.count('/crm')).distinct >= before.length)
  await worker.terminate()
  const topic = `${scene.prefix}waiting`
  await withAdmin(otherProgram(), (admin) => admin.deleteTopics({ topics: [topic] }))
  await until('it is gone', async () => {
    const names = await withAdmin(otherProgram(), (admin) => admin.listTopics())
    return !names.includes(topic)
  })
  await applyTopics(scene.variables)
  scene.catalog.rewrite(catalogOf({ state: 'paused' }))
  const again = await start(scene)
  const after = newIds(30)
  await scene.send('shop', after)
  await allWait(scene, after.length)
  expect(await waitingAt(again)).toBe(after.length)
  scene.catalog.rewrite(catalogOf({}))
  await until('all came', async () => (await receiver.count('/crm')).distinct >= before.length + after.length)
  expect(await receiver.count('/crm')).toMatchObject({ repeats: 0 })
})

test('closed queues are drained, and take nothing more', async () => {
  const scene = await open({ state: 'paused' })
  const worker = await start(scene)
  const ids = newIds(40)
  await scene.send('shop', ids)
  await allWait(scene, ids.length)
  await worker.terminate()
  const closed = await start(scene, { SLUICE_DELIVERY_WAITING_QUEUES: 'false' })
  const later = newIds(10)
  await scene.send('shop', later)
  await until('the later ones wait on the ladder', async () => {
    return (await readAll(`${scene.prefix}retry.1m`)).length >= later.length
  })
  scene.catalog.rewrite(catalogOf({}))
  await until('all of the queue came', async () => (await receiver.count('/crm')).distinct >= ids.length)
  await until('the queues are empty', async () => (await waitingAt(closed)) === 0)
  expect(await countRecords(`${scene.prefix}waiting`)).toBe(ids.length)
})

test('a growth takes along what waits, and nothing of what was delivered', async () => {
  const hooks = (id: string) => [{ url: receiver.url(`/${id}`) }]
  const both = (states: { a: string; b: string }): CatalogData => ({
    sources: [{ id: 'shop' }],
    destinations: [
      { id: 'a', sources: ['shop'], hooks: hooks('a'), state: states.a },
      { id: 'b', sources: ['shop'], hooks: hooks('b'), state: states.b },
    ],
  })
  const scene = await setScene({
    catalog: both({ a: 'paused', b: 'paused' }),
    variables: { SLUICE_REPEATS_WINDOW: '0s', SLUICE_TOPICS_PARTITIONS: '3' },
  })
  onTestFinished(() => scene.close())
  const worker = await start(scene)
  const ids = newIds(60)
  await scene.send('shop', ids)
  await allWait(scene, 2 * ids.length)
  scene.catalog.rewrite(both({ a: 'paused', b: 'on' }))
  await until('all of b came', async () => (await receiver.count('/b')).distinct >= ids.length)
  await worker.terminate()
  const grown = await runToEnd(['topics', 'grow', '7'], scene.variables)
  expect(grown).toMatchObject({ code: 0 })
  expect(await countRecords(`${scene.prefix}g2.waiting`)).toBe(ids.length)
  const after = await start(scene, { SLUICE_TOPICS_PARTITIONS: '7', SLUICE_TOPICS_GENERATION: '2' })
  await until('those of a wait', async () => (await waitingAt(after)) === ids.length)
  scene.catalog.rewrite(both({ a: 'on', b: 'on' }))
  await until('all of a came', async () => (await receiver.count('/a')).distinct >= ids.length)
  expect(await receiver.count('/a')).toMatchObject({ requests: ids.length })
  expect(await receiver.count('/b')).toMatchObject({ requests: ids.length })
})
