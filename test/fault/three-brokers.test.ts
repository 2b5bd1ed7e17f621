import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as passTime } from 'node:timers/promises'
import kafkajs from 'kafkajs'
import { expect, onTestFinished, test } from 'vitest'
import { encodeState, encodeStateKey } from '../../src/audience/records/state-record.ts'
import { decodeCommitMetadata } from '../../src/kafka/wire/commit-metadata.ts'
import { otherProgram } from '../support/kafka.ts'
import { type SentRecord, startLoad } from '../support/partition-load.ts'
import { joinsOf, openShop, probe, type Shop, troubleOf } from '../support/shop.ts'
import { startThreeBrokers, type ThreeBrokers } from '../support/three-brokers.ts'
import { until } from '../support/until.ts'
import type { SluiceProcess } from '../support/worker-process.ts'

const partitions = [0, 1, 2, 3, 4, 5]

async function sendTo(shop: Shop, which: readonly number[], count: number): Promise<string[]> {
  return (await Promise.all(which.map((partition) => shop.send(partition, count)))).flat()
}

const threeCopies = {
  SLUICE_TOPICS_DEVELOPMENT: 'false',
  SLUICE_TOPICS_REPLICATION: '3',
  SLUICE_TOPICS_MIN_INSYNC: '2',
}

test('partitions without a leader wait and say so, once each; all others go on; they go on when their broker is back', async () => {
  const cluster = await startThreeBrokers()
  const shop = await openShop({ brokers: cluster.brokers, variables: threeCopies })
  const topic = shop.topic('events')
  await shop.admin((admin) => admin.deleteTopics({ topics: [topic] }))
  await until('it is gone', () => shop.admin(async (admin) => !(await admin.listTopics()).includes(topic)))
  await cluster.createTopic(topic, [[1], [2], [3], [1], [2], [3]], { 'min.insync.replicas': '1' })
  const oneCopy = { SLUICE_TOPICS_REPLICATION: '1', SLUICE_TOPICS_MIN_INSYNC: '1' }
  await shop.applyTopics(oneCopy)
  const worker = await shop.start({ variables: oneCopy })
  await shop.untilArrived(await sendTo(shop, partitions, 10))
  await cluster.node(3).kill('SIGKILL')
  await until('it is told', () => troubleOf(worker, { topic, partition: 2 }).length > 0)
  await shop.untilArrived(await sendTo(shop, [0, 1, 3, 4], 50))
  expect(await probe(worker, '/livez')).toMatchObject({ status: 200 })
  expect(await worker.metric('sluice_partitions_in_trouble', { topic: 'events' })).toBe(2)

  await cluster.node(3).start()
  await shop.untilArrived(await sendTo(shop, partitions, 10))
  await until('nothing is in trouble', async () => {
    return (await worker.metric('sluice_partitions_in_trouble')) === 0
  })
  for (const partition of [2, 5]) expect(troubleOf(worker, { topic, partition })).toHaveLength(1)
  expect(joinsOf(worker)).toBe(1)
})

const twoCopies = { SLUICE_TOPICS_REPLICATION: '2', SLUICE_TOPICS_MIN_INSYNC: '1' }

/** Opens a shop with a topic that is only on brokers 1 and 2. Broker 1 leads all its partitions. */
async function openOnTwo(
  cluster: ThreeBrokers,
  variables: Record<string, string>,
  name = 'events',
): Promise<Shop> {
  const shop = await openShop({ brokers: cluster.brokers, variables: { ...threeCopies, ...variables } })
  const topic = shop.topic(name)
  await shop.admin((admin) => admin.deleteTopics({ topics: [topic] }))
  await until('it is gone', () => shop.admin(async (admin) => !(await admin.listTopics()).includes(topic)))
  await cluster.createTopic(
    topic,
    partitions.map(() => [1, 2]),
    { 'min.insync.replicas': '1' },
  )
  await shop.applyTopics({ ...twoCopies })
  return shop
}

/** Kills broker 2. All records written from now on are only on broker 1. */
async function leaveBehind(cluster: ThreeBrokers, shop: Shop, name = 'events'): Promise<void> {
  const topic = shop.topic(name)
  await cluster.untilInSync(shop.scene.prefix)
  await allowUncleanElection(shop, topic)
  await cluster.node(2).kill('SIGKILL')
  await until('the copies on broker 2 are behind', () =>
    shop.admin(async (admin) => {
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
      return topics[0]?.partitions.every(({ isr }) => isr.length === 1)
    }),
  )
}

/**
 * Kills broker 1 and starts broker 2, which then leads. No running broker has the records that broker 2
 * lacks.
 */
async function cutOff(cluster: ThreeBrokers, shop: Shop, name = 'events'): Promise<void> {
  await cluster.node(1).kill('SIGKILL')
  await cluster.node(2).start()
  await until('broker 2 leads', () => isLedBy(shop, shop.topic(name), 2), { timeoutMs: 60_000 })
}

test('after an unclean election that cut off what was delivered, all that is written then is delivered, though the log has grown past the position', async () => {
  const cluster = await startThreeBrokers()
  const shop = await openOnTwo(cluster, { SLUICE_KAFKA_SESSION_TIMEOUT: '60s' })
  const topic = shop.topic('events')
  const worker = await shop.start({ variables: twoCopies })
  await shop.untilArrived(await sendTo(shop, partitions, 20))
  await leaveBehind(cluster, shop)
  await shop.untilArrived(await sendTo(shop, partitions, 30))
  await until('it is committed', async () => (await shop.scene.lag()) === 0, { timeoutMs: 60_000 })
  process.kill(worker.pid, 'SIGSTOP')
  onTestFinished(() => {
    if (worker.isRunning) process.kill(worker.pid, 'SIGCONT')
  })
  await cutOff(cluster, shop)
  const written = await sendTo(shop, partitions, 60)
  process.kill(worker.pid, 'SIGCONT')
  await shop.untilArrived(written, { timeoutMs: 60_000 })
  expect(await worker.metric('sluice_truncations_total', { topic: 'events' })).toBe(partitions.length)
  await until('each is told', () =>
    partitions.every((partition) => troubleOf(worker, { topic, partition, level: 'error' }).length > 0),
  )
})

test('after an unclean election while no worker ran, all that is written then is delivered, at offsets too that were delivered above the commit', async () => {
  const cluster = await startThreeBrokers()
  const shop = await openOnTwo(cluster, { SLUICE_DELIVERY_TIMEOUT: '60s' })
  const { receiver, path } = shop
  const topic = shop.topic('events')
  const worker = await shop.start({ variables: twoCopies })
  await shop.untilArrived(await sendTo(shop, partitions, 20))
  await until('it is committed', async () => (await shop.scene.lag()) === 0, { timeoutMs: 60_000 })
  // A message that gets no answer keeps the committed offset where it is.
  await receiver.behave(path, { isHung: true })
  const hung = await sendTo(shop, partitions, 1)
  await shop.untilArrived(hung)
  await receiver.behave(path, {})
  const kept = await sendTo(shop, partitions, 10)
  await shop.untilArrived(kept)
  await leaveBehind(cluster, shop)
  await shop.untilArrived(await sendTo(shop, partitions, 30))
  await until('all but those is in the commit', async () =>
    (await settledAbove(shop, topic)).every((count) => count === 40),
  )
  await worker.kill()
  await cutOff(cluster, shop)
  const written = await sendTo(shop, partitions, 60)

  const next = await shop.start({ variables: { ...twoCopies, SLUICE_TOPICS_CHECK: 'warn' } })
  await shop.untilArrived(written, { timeoutMs: 60_000 })
  const arrivals = await receiver.arrivals(path)
  for (const id of hung) expect(arrivals.get(id)).toHaveLength(2)
  for (const id of [...kept, ...written]) expect(arrivals.get(id)).toHaveLength(1)
  expect(await next.metric('sluice_truncations_total', { topic: 'events' })).toBe(partitions.length)
  await until('each is told', () =>
    partitions.every((partition) => troubleOf(next, { topic, partition, at: 31, from: 61 }).length === 1),
  )
})

test.each([
  ['no worker ran', true],
  ['a worker that holds it was suspended', false],
])(
  'after an unclean election while %s, the state on disk is read again, though the log has grown past its position',
  async (_, isStopped) => {
    const cluster = await startThreeBrokers()
    const folder = await mkdtemp(join(tmpdir(), 'sluice-state-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const state = { SLUICE_STATE_FOLDER: folder, SLUICE_TOPICS_CHECK: 'warn' }
    const shop = await openOnTwo(cluster, { ...state, SLUICE_KAFKA_SESSION_TIMEOUT: '60s' }, 'memberships')
    const worker = await shop.start({ variables: twoCopies })
    await writeStates(cluster, shop, [0, 20])
    await leaveBehind(cluster, shop, 'memberships')
    await writeStates(cluster, shop, [20, 50])
    await until('all are read', async () => (await shop.scene.lag()) === 0, { timeoutMs: 60_000 })
    if (isStopped) await worker.terminate()
    else process.kill(worker.pid, 'SIGSTOP')
    onTestFinished(() => {
      if (worker.isRunning) process.kill(worker.pid, 'SIGCONT')
    })
    await cutOff(cluster, shop, 'memberships')
    await writeStates(cluster, shop, [100, 160])
    if (!isStopped) process.kill(worker.pid, 'SIGCONT')
    const { log } = isStopped ? await shop.start({ variables: twoCopies }) : worker
    const mistrusted = { unit: 0, why: 'its log was truncated or recreated' }
    const restored = { unit: 0, records: 80, msg: 'the state of a unit is complete' }
    await until(
      'all is read again',
      () => {
        expect(log).toContainEqual(expect.objectContaining(mistrusted))
        expect(log).toContainEqual(expect.objectContaining(restored))
        return true
      },
      { timeoutMs: 60_000 },
    )
  },
  240_000,
)

/** Writes the states of these users to partition 0 of `memberships`, one for each user. */
async function writeStates(cluster: ThreeBrokers, shop: Shop, [from, to]: [number, number]): Promise<void> {
  const version = { atMs: 1, isNative: true, partition: 0, offset: 0 }
  const state = { kind: 'audience', id: 'a', name: 'a', value: 'true', version, since: version } as const
  const messages = Array.from({ length: to - from }, (_, index) => ({
    partition: 0,
    key: encodeStateKey({
      kind: 'property',
      userId: `user-${from + index}`,
      spaceId: 'space',
      property: 'a',
    }),
    value: encodeState(state, true),
  }))
  const producer = otherProgram(cluster.brokers).producer()
  await producer.connect()
  try {
    await producer.send({ topic: shop.topic('memberships'), messages })
  } finally {
    await producer.disconnect()
  }
}

/**
 * Returns, for each partition, the number of records above the committed offset that the commit records as
 * settled.
 */
async function settledAbove(shop: Shop, topic: string): Promise<number[]> {
  const groupId = shop.scene.variables['SLUICE_KAFKA_GROUP_ID'] ?? ''
  const fetched = await shop.admin((admin) => admin.fetchOffsets({ groupId, topics: [topic] }))
  return fetched.flatMap(({ partitions: committed }) =>
    committed.map(
      ({ offset, metadata }) => decodeCommitMetadata(Number(offset), metadata)?.settledAbove.length ?? 0,
    ),
  )
}

/**
 * Allows a replica that lacks records to become the leader. Operators set this if they prefer lost records to
 * an outage.
 */
async function allowUncleanElection(shop: Shop, topic: string): Promise<void> {
  const settings = {
    'unclean.leader.election.enable': 'true',
    'min.insync.replicas': '1',
    'message.timestamp.type': 'LogAppendTime',
  }
  const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }))
  await shop.admin((admin) =>
    admin.alterConfigs({
      validateOnly: false,
      resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configEntries }],
    }),
  )
}

async function isLedBy(shop: Shop, topic: string, id: number): Promise<boolean> {
  const { topics } = await shop.admin((admin) => admin.fetchTopicMetadata({ topics: [topic] }))
  return topics[0]?.partitions.every(({ leader }) => leader === id) ?? false
}

test('a rolling restart of three brokers under load moves no partition among three workers and loses nothing', async () => {
  const cluster = await startThreeBrokers()
  const shop = await openShop({
    brokers: cluster.brokers,
    variables: { ...threeCopies, SLUICE_KAFKA_SESSION_TIMEOUT: '30s' },
  })
  const workers = [await shop.start(), await shop.start(), await shop.start()]
  await until('each has its share', () => areShared(workers))
  const joins = workers.map(joinsOf)
  const load = await startLoad({ brokers: cluster.brokers, topic: shop.topic('events'), partitions })
  await passTime(2_000)
  for (const id of [1, 2, 3]) {
    await cluster.node(id).kill('SIGTERM')
    await cluster.node(id).start()
    await cluster.untilInSync(shop.scene.prefix)
  }
  await passTime(2_000)
  const sent = await load.stop()
  await shop.untilArrived(
    sent.map(({ id }) => id),
    { timeoutMs: 60_000 },
  )
  const standstillMs = longestStandstill(sent, await shop.receiver.arrivals(shop.path))
  const { repeats } = await shop.receiver.count(shop.path)
  process.stdout.write(
    `rolling restart: ${sent.length} records, longest time without progress of a partition that had records ${standstillMs} ms, ${repeats} repeats\n`,
  )
  expect(workers.map(joinsOf)).toEqual(joins)
})

function areShared(workers: readonly SluiceProcess[]): boolean {
  return workers.every(
    ({ log }) => log.findLast(({ msg }) => msg === 'joined the group')?.['gained'] !== undefined,
  )
}

/** Returns the longest time from the sending of a record to its first arrival, in milliseconds. */
function longestStandstill(sent: readonly SentRecord[], arrivals: Map<string, number[]>): number {
  return Math.max(...sent.map(({ id, atMs }) => Math.min(...(arrivals.get(id) ?? [Infinity])) - atMs))
}
