import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type RecordProducer, startProducer } from '../../../src/kafka/produce/producer.ts'
import { createPartitionReader, type PartitionReader } from '../../../src/kafka/read/partition-reader.ts'
import { lookAt } from '../../../src/waiting/look.ts'
import { otherProgram, produce } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { workerKafka } from '../../support/worker-kafka.ts'
import { WaitingQueues } from '../../../src/waiting/queues.ts'
import { createQueueTopics, type Owner, openOwner, partitionOf } from './queue-owner.ts'

/** What a unit's queue says while Kafka can't be read, or has deleted what waited. It goes on afterwards. */

let producer: RecordProducer
let reader: PartitionReader

beforeAll(async () => {
  const kafka = workerKafka()
  producer = await startProducer({ kafka, maxRecordBytes: 100_000, onStalled() {} })
  reader = createPartitionReader(kafka, { keepsOpen: true })
})

afterAll(async () => {
  await producer?.stop()
  await reader?.stop()
})

/** An owner whose next readings of a kind fail as often as `failures` says. */
async function own({ maxAgeMs = Infinity } = {}) {
  const of = await createQueueTopics()
  const failures = { piece: 0, readWhole: 0 }
  const unsteady: PartitionReader = {
    ...reader,
    piece: (where) =>
      failures.piece-- > 0 ? Promise.reject(new Error('the leader does not answer')) : reader.piece(where),
    readWhole(options) {
      if (failures.readWhole-- > 0) throw new Error('the leader does not answer')
      return reader.readWhole(options)
    },
  }
  const told: string[] = []
  const tell = (_fields: object, message: string): void => void told.push(message)
  const log = { info: tell, warn: tell, error: tell }
  const owner = await openOwner({ reader: unsteady, producer }, of, undefined, { maxAgeMs, log })
  onTestFinished(() => owner.queue.close())
  return { owner, of, failures, told }
}

/** Looks at the log of a queue if this is due, as all members do. */
async function look(topic: string, { queue }: Owner): Promise<void> {
  const nowMs = performance.now()
  if (queue.isLookDue(nowMs)) await lookAt(new Map([[0, queue]]), { reader, topic, nowMs })
}

test('messages whose content can not be read are read later', async () => {
  const { owner, failures, told } = await own()
  await owner.append('a', 'a1')
  failures.piece = 1
  expect(await owner.next('a')).toBe('a1')
  expect(told).toEqual(['waiting messages can not be read, trying again'])
})

test('what another owner has appended is read later, if the log can not be read now', async () => {
  const { owner, of, failures, told } = await own()
  failures.readWhole = 1
  await produce(of.topic, [{ value: 'b1', headers: { 'destination-id': 'b', queued: 'other/1/fresh' } }])
  const code = owner.owners.codeOf('b', 'fresh')
  await until('it waits', async () => {
    await look(of.topic, owner)
    return owner.queue.untakenOf(code) === 1
  })
  expect(told).toEqual(['the queue of a unit can not be read, trying again'])
})

test('what has waited for too long is taken out later, if it can not be read now', async () => {
  const { owner, of, failures, told } = await own({ maxAgeMs: 0 })
  await owner.append('a', 'a1')
  failures.piece = 1
  await until('it is taken out', async () => {
    await look(of.topic, owner)
    return owner.expired.length === 1
  })
  expect(told).toEqual(['the oldest messages of a queue can not be read'])
})

test('messages that Kafka has deleted while they waited are told and counted', async () => {
  const { owner, of, told } = await own()
  await Promise.all(['a1', 'a2', 'a3'].map((id) => owner.append('a', id)))
  const { topic } = of
  const admin = otherProgram().admin()
  await admin.connect()
  onTestFinished(() => admin.disconnect())
  // After this call, the client knows the leaders of the topic.
  await admin.fetchTopicOffsets(topic)
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '2' }] })
  await until('it is told', async () => {
    await look(topic, owner)
    return owner.lost.length > 0
  })
  expect(owner.lost).toEqual([2])
  expect(told).toEqual(['Kafka has deleted messages that waited for their turn: see retention.ms'])
  expect(await owner.drain('a')).toEqual(['a3'])
})

const nothing = (): void => undefined

test('the ends of queues that can not be looked up are told', async () => {
  const of = await createQueueTopics()
  const told: string[] = []
  const tell = (_fields: object, message: string): void => void told.push(message)
  const calls = { lend: nothing, giveBack: nothing, isOtherFrom: nothing, isOtherLog: nothing }
  const partition = partitionOf({}, calls)
  const queues = new WaitingQueues({
    ...of,
    reader: { ...reader, ranges: () => Promise.reject(new Error('no broker answers')) },
    producer,
    group: { pulled: () => partition, isReadByAll: () => true },
    take: nothing,
    expire: nothing,
    drop: nothing,
    maxAgeMs: () => Infinity,
    onWaiting: nothing,
    onReady: nothing,
    onLost: nothing,
    isOpen: true,
    cacheBytes: 1024 ** 2,
    log: { info: tell, warn: tell, error: tell },
  })
  onTestFinished(() => queues.stop())
  await queues.prepare(0)
  await until('it is told', () => told.length > 0)
  expect(told[0]).toBe('the ends of queues can not be looked up')
})
