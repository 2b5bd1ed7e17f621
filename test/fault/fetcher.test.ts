import { mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Admin } from 'kafkajs'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type KafkaNode, type RunningKafka, startKafka } from '../../src/development/kafka.ts'
import { createPartitionReader } from '../../src/kafka/read/partition-reader.ts'
import { locate } from '../../src/kafka/fetch/positions.ts'
import { withAdmin } from '../../src/kafka/cluster/with-admin.ts'
import { beginReading, numbered, numbers, type Reader, type Reading } from '../integration/kafka/readers.ts'
import { otherProgram, randomPrefix } from '../support/kafka.ts'
import { until } from '../support/until.ts'
import { workerKafka } from '../support/worker-kafka.ts'

/** Tests of a fetcher with three brokers. The tests kill the brokers, and read and change their files. */

let folder = ''
let cluster: RunningKafka
let reading: Reading | undefined

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-kafka-'))
  cluster = await startKafka({ brokers: [], ways: ['java'], count: 3, dataDir: folder })
})

afterEach(async () => {
  await reading?.stop()
  for (const broker of cluster.nodes ?? []) if (broker.pid === undefined) await broker.start()
})

afterAll(async () => {
  await Promise.all((cluster.nodes ?? []).map((broker) => broker.kill('SIGKILL')))
  await cluster.stop()
  await rm(folder, { recursive: true, force: true, maxRetries: 3 })
})

function admin<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
  return withAdmin(otherProgram(cluster.brokers), work)
}

/**
 * Creates a topic and waits until its leaders serve it. `replicas` are the ids of the brokers that have each
 * partition. The first broker of a list leads.
 */
async function createTopic(
  replicas: readonly number[][],
  settings: Record<string, string> = {},
): Promise<string> {
  const topic = `${randomPrefix()}events`
  const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }))
  const replicaAssignment = replicas.map((ids, partition) => ({ partition, replicas: [...ids] }))
  await admin(async (one) => {
    await one.createTopics({ waitForLeaders: false, topics: [{ topic, replicaAssignment, configEntries }] })
    await until('its leaders serve it', async () => {
      return (await one.fetchTopicOffsets(topic)).length === replicas.length
    })
  })
  return topic
}

async function produce(topic: string, from: number, to: number, { partition = 0, acks = -1 } = {}) {
  const producer = otherProgram(cluster.brokers).producer({ retry: { retries: 20 } })
  await producer.connect()
  try {
    await producer.send({ topic, acks, messages: numbered(from, to, partition) })
  } finally {
    await producer.disconnect()
  }
}

function node(id: number): KafkaNode {
  const found = cluster.nodes?.find((one) => one.id === id)
  if (found === undefined) throw new Error(`there is no broker ${id}`)
  return found
}

function readAll(of: Reading): Reader[] {
  return [0, 1, 2].map((partition) => of.read({ partition }))
}

test('a leader that moves is followed: nothing is lost, and nothing comes twice', async () => {
  const topic = await createTopic([
    [1, 2, 3],
    [2, 3, 1],
    [3, 1, 2],
  ])
  reading = await beginReading([topic], { kafka: workerKafka({ brokers: cluster.brokers }) })
  const { lines, view } = reading
  const readers = readAll(reading)
  let count = 0
  const round = async (): Promise<void> => {
    for (const partition of [0, 1, 2]) await produce(topic, count, count + 50, { partition })
    count += 50
    await until('all is read', () => readers.every(({ texts }) => texts.length >= count), {
      timeoutMs: 30_000,
    })
  }
  await round()
  for (const id of [1, 2, 3]) {
    await node(id).kill('SIGTERM')
    await round()
    await node(id).start()
    await round()
  }
  for (const { texts, truncations, lost } of readers) {
    expect(texts).toEqual(numbers(0, count))
    expect({ truncations, lost }).toEqual({ truncations: [], lost: [] })
  }
  expect(readers.map(({ handle }) => handle.leaderEpochBefore(count)).every((epoch) => epoch > 0)).toBe(true)
  expect(view.partitionsOf(topic)).toBe(3)
  expect(lines.filter(({ level }) => level === 'error')).toEqual([])
})

test('an offline partition waits and is told of once, the others go on; it is read when its broker is back', async () => {
  const topic = await createTopic([[1], [2], [3]])
  reading = await beginReading([topic], { kafka: workerKafka({ brokers: cluster.brokers }) })
  const { lines, fetcher } = reading
  const readers = readAll(reading)
  for (const partition of [0, 1, 2]) await produce(topic, 0, 10, { partition })
  await until('all is read', () => readers.every(({ texts }) => texts.length === 10))
  await node(2).kill('SIGKILL')
  for (const partition of [0, 2]) await produce(topic, 10, 20, { partition })
  await until('the others are read', () => [0, 2].every((at) => readers[at]?.texts.length === 20))
  await until('it is told', () => fetcher.troubled.length > 0, { timeoutMs: 30_000 })
  expect(fetcher.troubled).toMatchObject([{ topic, partition: 1 }])
  await until('why is known', () => fetcher.troubled[0]?.trouble.includes('has no leader') === true, {
    timeoutMs: 30_000,
  })
  await node(2).start()
  await produce(topic, 10, 20, { partition: 1 })
  await until('it is read', () => readers[1]?.texts.length === 20, { timeoutMs: 30_000 })
  expect(fetcher.troubled).toEqual([])
  expect(lines.filter(({ fields }) => fields['topic'] === topic)).toMatchObject([
    { level: 'warn', fields: { partition: 1 } },
    { level: 'info', fields: { partition: 1 } },
  ])
})

test('a log that its new leader has lost the end of is told of, and read on from where they part', async () => {
  const settings = { 'min.insync.replicas': '1', 'unclean.leader.election.enable': 'true' }
  const topic = await createTopic([[1, 2]], settings)
  reading = await beginReading([topic], { kafka: workerKafka({ brokers: cluster.brokers }) })
  const reader = reading.read()
  await produce(topic, 0, 100)
  await until('it is read', () => reader.texts.length === 100)
  await node(2).kill('SIGKILL')
  await produce(topic, 100, 150)
  await until('it is read', () => reader.texts.length === 150, { timeoutMs: 60_000 })
  const leaderEpoch = reader.handle.leaderEpochBefore(150)
  // Broker 2 has none of the last fifty records.
  await node(1).kill('SIGKILL')
  await node(2).start()
  await produce(topic, 1_000, 1_200)
  await until('it is told', () => reader.truncations.length > 0, { timeoutMs: 60_000 })
  expect(reader.truncations).toMatchObject([
    { at: 100, from: 150, reason: expect.stringMatching(/^(shorter|diverged)$/) },
  ])
  // A reader that comes after the log has grown past offset 150 detects the lost records by the leader epoch.
  expect(await locate(reading.view, [{ topic, partition: 0, offset: 150, leaderEpoch }])).toMatchObject([
    { kind: 'truncated', at: 100, from: 150, reason: 'diverged', log: { end: 300 } },
  ])
  const anew = createPartitionReader(workerKafka({ brokers: cluster.brokers }))
  try {
    const hasDiverged = (offset: number) => anew.hasDiverged({ topic, partition: 0, offset, leaderEpoch })
    expect([await hasDiverged(100), await hasDiverged(101), await hasDiverged(150)]).toEqual([
      false,
      true,
      true,
    ])
  } finally {
    await anew.stop()
  }
  reader.texts.length = 0
  reader.handle.seek(100)
  await until('it is read', () => reader.texts.length === 200, { timeoutMs: 30_000 })
  expect(reader.texts).toEqual(numbers(1_000, 1_200))
})

test('a batch that is damaged on disk is one record that says so; those around it and all others are read', async () => {
  const topic = await createTopic([[1], [1]])
  for (const from of [0, 10, 20]) await produce(topic, from, from + 10)
  const file = join(folder, 'broker-1', 'data', `${topic}-0`, '00000000000000000000.log')
  const log = await readFile(file)
  const second = 12 + log.readInt32BE(8)
  const third = second + 12 + log.readInt32BE(second + 8)
  const disk = await open(file, 'r+')
  // Damages the last value of the second batch. A broker doesn't check the batches that it serves.
  await disk.write(Buffer.from('x'), 0, 1, third - 2)
  await disk.close()
  reading = await beginReading([topic], { kafka: workerKafka({ brokers: cluster.brokers }) })
  const [damaged, well] = [reading.read(), reading.read({ partition: 1 })]
  await produce(topic, 0, 10, { partition: 1 })
  await until('the other is read', () => well.texts.length === 10)
  await until('all is read', () => damaged.handle.position === 30, { timeoutMs: 30_000 })
  expect(damaged.texts).toEqual([
    ...numbers(0, 10),
    expect.stringMatching(/^offsets 10 to 19 of the partition can't be read: .* damaged at the broker/),
    ...numbers(20, 30),
  ])
  expect(reading.lines).toEqual([
    { level: 'error', fields: { topic, partition: 0, from: 10, to: expect.any(Number) } },
  ])
})
