import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type RecordProducer, startProducer } from '../../../src/kafka/produce/producer.ts'
import { createPartitionReader, type PartitionReader } from '../../../src/kafka/read/partition-reader.ts'
import { blockSize } from '../../../src/waiting/block.ts'
import { encodeDone, encodeOwners, markKeyText } from '../../../src/waiting/marks.ts'
import { lookAt } from '../../../src/waiting/look.ts'
import { Owners } from '../../../src/waiting/owners.ts'
import type { QueuePartition } from '../../../src/waiting/mark-writer.ts'
import type { UnitQueue } from '../../../src/waiting/unit-queue.ts'
import { produce, readAll } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { workerKafka } from '../../support/worker-kafka.ts'
import {
  createQueueTopics,
  type Owner,
  openOwner,
  type OwnerSettings,
  type QueueTopics,
} from './queue-owner.ts'

/** One unit's queues on a real Kafka, with several owners one after another, or at the same time. */

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

const open: UnitQueue[] = []

afterEach(async () => {
  await Promise.all(open.splice(0).map((queue) => queue.close()))
})

async function own(
  of: QueueTopics,
  found?: Partial<QueuePartition['found']>,
  { reader: through = reader, ...settings }: OwnerSettings & { reader?: PartitionReader } = {},
): Promise<Owner> {
  const owner = await openOwner({ reader: through, producer }, of, found, settings)
  open.push(owner.queue)
  return owner
}

/** Looks at the log of a queue if this is due, as all members do. */
async function look({ topic }: QueueTopics, { queue }: Owner): Promise<void> {
  const nowMs = performance.now()
  if (queue.isLookDue(nowMs)) await lookAt(new Map([[0, queue]]), { reader, topic, nowMs })
}

/** Writes a record to the topic as another process would. */
function write({ topic }: QueueTopics, id: string, queued: string): Promise<void> {
  return produce(topic, [{ value: id, headers: { 'destination-id': 'a', queued } }])
}

test('each destination gets its messages in their order, whatever lies between them', async () => {
  const first = await own(await createQueueTopics())
  await Promise.all(['a1', 'b1', 'a2', 'c1', 'b2', 'a3'].map((id) => first.append(id.slice(0, 1), id)))
  expect(await first.drain('a')).toEqual(['a1', 'a2', 'a3'])
  expect(await first.drain('c')).toEqual(['c1'])
  expect(await first.drain('b')).toEqual(['b1', 'b2'])
  expect(first.queue.undone).toBe(0)
})

test('the next owner gets what was not done, and nothing else, and reads no record that a mark describes', async () => {
  const of = await createQueueTopics()
  const first = await own(of)
  const ids = Array.from({ length: 5_000 }, (_, index) => `a${index}`)
  await Promise.all(ids.map((id) => first.append('a', id)))
  for (const _ of ids.slice(0, 10)) await first.next('a')
  for (const { record } of first.taken.slice(3)) record.settle()
  expect(first.lent()).toBe(11)
  await first.queue.flush()
  // Those that are done are given back when their marks are written.
  expect(first.lent()).toBe(3)
  const second = await own(of)
  expect(second.queue.undone).toBe(5_000 - 7)
  expect(await second.next('a')).toBe('a0')
  expect(await second.next('a')).toBe('a1')
  expect(await second.next('a')).toBe('a2')
  expect(await second.next('a')).toBe('a10')
})

test('a record that an earlier owner appends after the next one has read the log is found', async () => {
  const of = await createQueueTopics()
  const first = await own(of)
  await first.append('a', 'a1')
  const second = await own(of)
  await first.append('a', 'late')
  await second.append('a', 'a2')
  await until('it knows all', () => second.queue.undone === 3)
  expect(await second.drain('a')).toEqual(['a1', 'late', 'a2'])
})

test('a late record is found without an append of its own', async () => {
  const of = await createQueueTopics()
  const first = await own(of)
  const second = await own(of)
  await first.append('a', 'late')
  await until('it is found', async () => {
    await look(of, second)
    return second.queue.undone === 1
  })
  expect(await second.drain('a')).toEqual(['late'])
})

test('records that are appended while the owner reads what another one has appended are found too', async () => {
  const of = await createQueueTopics()
  const first = await own(of)
  const [read, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let isHeld = false
  const slow: PartitionReader = {
    ...reader,
    async *readWhole(options) {
      const pieces = []
      for await (const piece of reader.readWhole(options)) pieces.push(piece)
      if (isHeld) {
        read.resolve()
        await goOn.promise
      }
      yield* pieces
    },
  }
  const second = await own(of, undefined, { reader: slow })
  isHeld = true
  await first.append('a', 'late')
  // Its offset tells that another record lies before it.
  await second.append('a', 'a1')
  await read.promise
  await second.append('a', 'a2')
  goOn.resolve()
  await until('it knows all', () => second.queue.undone === 3)
  expect(await second.drain('a')).toEqual(['late', 'a1', 'a2'])
})

test('full blocks without marks, which a killed owner has left, are read by its successor alone', async () => {
  const of = await createQueueTopics()
  const count = 2 * blockSize + 10
  const headers = { 'destination-id': 'a' }
  await produce(
    of.topic,
    Array.from({ length: count }, (_, index) => ({
      value: `a${index}`,
      headers: { ...headers, queued: `killed/${index + 1}/fresh` },
    })),
  )
  const first = await own(of)
  await first.queue.close()
  const from: number[] = []
  const seen: PartitionReader = {
    ...reader,
    readWhole(options) {
      if (options.topic === of.topic) from.push(options.from)
      return reader.readWhole(options)
    },
  }
  const second = await own(of, undefined, { reader: seen })
  expect(second.queue.undone).toBe(count)
  expect(from).toEqual([count])
  expect(await second.next('a')).toBe('a0')
})

test('one question to the brokers finds what others have appended to all units', async () => {
  const of = await createQueueTopics(3)
  const owned = [0, 1, 2].map((unit) => own(of, undefined, { unit }))
  const owners = await Promise.all(owned)
  const headers = { 'destination-id': 'a', queued: '' }
  await produce(
    of.topic,
    [0, 1, 2].map((partition) => ({ value: `of-${partition}`, partition, headers })),
  )
  let questions = 0
  const counted: typeof reader = {
    ...reader,
    ranges(where) {
      questions++
      return reader.ranges(where)
    },
  }
  const queues = new Map(owners.map(({ queue }, unit) => [unit, queue]))
  expect(await lookAt(queues, { reader: counted, topic: of.topic, nowMs: performance.now() })).toEqual([])
  await until('all are found', () => owners.every(({ queue }) => queue.undone === 1))
  expect(questions).toBe(1)
  expect(await Promise.all(owners.map((owner) => owner.next('a')))).toEqual(['of-0', 'of-1', 'of-2'])
})

test('marks of an earlier owner that come late are facts, and overwrite nothing', async () => {
  const of = await createQueueTopics()
  const first = await own(of)
  await Promise.all(['a1', 'a2', 'a3'].map((id) => first.append('a', id)))
  await first.next('a')
  const second = await own(of)
  expect(await second.next('a')).toBe('a1')
  expect(await second.next('a')).toBe('a2')
  second.taken[1]?.record.settle()
  await second.queue.flush()
  first.taken[0]?.record.settle()
  await first.queue.flush()
  const third = await own(of)
  expect(await third.drain('a')).toEqual(['a3'])
})

test('a look at the logs of all units says nothing of a log that is not read yet', async () => {
  const of = await createQueueTopics()
  const looked = Promise.withResolvers<void>()
  const slow: PartitionReader = {
    ...reader,
    async topicId(where) {
      await looked.promise
      return reader.topicId(where)
    },
  }
  const where = { reader, topic: of.topic, nowMs: performance.now() }
  const owner = await own(of, undefined, {
    reader: slow,
    beforeLoad: (queue) => void lookAt(new Map([[0, queue]]), where).then(() => looked.resolve()),
  })
  expect(owner.truncatedAt).toEqual([])
})

test('a record that was written twice, because its acknowledgement was lost, is delivered once', async () => {
  const of = await createQueueTopics()
  await write(of, 'a1', 'w/1/fresh')
  await write(of, 'a1', 'w/1/fresh')
  await write(of, 'a2', 'w/2/fresh')
  await write(of, 'a1', 'w/1/fresh')
  const owner = await own(of)
  expect(await owner.drain('a')).toEqual(['a1', 'a2'])
})

test('a commit that somebody else wrote voids the marks: all from there is delivered', async () => {
  const of = await createQueueTopics()
  const first = await own(of)
  await Promise.all(['a1', 'a2', 'a3', 'a4'].map((id) => first.append('a', id)))
  await first.drain('a')
  await first.queue.flush()
  const reset = await own(of, { offset: 1, isForeign: true })
  expect(await reset.drain('a')).toEqual(['a2', 'a3', 'a4'])
  await reset.queue.flush()
  // What the commit has passed over stays passed over.
  const next = await own(of)
  expect(await next.drain('a')).toEqual([])
})

test('marks of a log that was shorter, or another, are void', async () => {
  const of = await createQueueTopics()
  const first = await own(of)
  await Promise.all(['a1', 'a2', 'a3'].map((id) => first.append('a', id)))
  await first.drain('a')
  await first.queue.flush()
  const other = await createQueueTopics()
  await write(other, 'b1', 'w/1/fresh')
  const marks = await readAll(of.marksTopic)
  await produce(
    other.marksTopic,
    marks.map(({ key, value }) => ({ key, value })),
  )
  const owner = await own(other)
  expect(await owner.drain('a')).toEqual(['b1'])
})

test('marks of records that the log has lost say nothing about the records in their place', async () => {
  const of = await createQueueTopics()
  await write(of, 'a1', 'w/1/fresh')
  const topicId = (await reader.topicId({ topic: of.topic, partition: 0 })) ?? ''
  const bits = Buffer.alloc(blockSize / 8)
  bits[0] = 0b10_0000
  const ownersOf = new Owners()
  const runs = [[ownersOf.codeOf('x', 'fresh'), 10]] as const
  await produce(of.marksTopic, [
    {
      key: markKeyText({ kind: 'owners', topicId, block: 0 }),
      value: encodeOwners({ runs, sequences: new Map([['w', 9]]) }, ownersOf),
    },
    { key: markKeyText({ kind: 'done', topicId, block: 0, writer: 'w' }), value: encodeDone(bits) },
  ])
  const owner = await own(of)
  expect(await owner.drain('x')).toEqual([])
  expect(await owner.drain('a')).toEqual(['a1'])
})

/** Returns the record of a message that was made from the record `events/0/7`. */
function queuedRecord(id: string, queueClass: string): Parameters<typeof produce>[1][number] {
  const headers = { 'destination-id': 'a', 'message-id': id, origin: 'events/0/7' }
  return { value: id, headers: { ...headers, queued: `${queueClass}/1/${queueClass}` } }
}

test('the next owner knows which new messages others have queued, and not only replayed', async () => {
  const of = await createQueueTopics()
  const first = await own(of)
  await produce(of.topic, [queuedRecord('1', 'backfill')])
  const origin = { topic: 'events', partition: 0, offset: 7 }
  const message = { destinationId: 'a', messageId: '1', origin, source: origin }
  expect((await own(of)).queue.before.has(message)).toBe(false)
  await produce(of.topic, [queuedRecord('1', 'fresh')])
  const { queue } = await own(of)
  expect(queue.before.has(message)).toBe(true)
  expect(queue.before.has({ ...message, messageId: '2' })).toBe(false)
  expect(queue.before.hasLater({ ...message, origin: { ...origin, offset: 6 } })).toBe(true)
  expect(first.queue.before.has(message)).toBe(false)
})

test('records without a readable header wait as new messages of their destination', async () => {
  const of = await createQueueTopics()
  await write(of, 'a1', 'nonsense')
  await write(of, 'a2', '')
  const owner = await own(of)
  expect(await owner.drain('a')).toEqual(['a1', 'a2'])
})

test('a returned record is the next one again', async () => {
  const owner = await own(await createQueueTopics())
  await Promise.all(['a1', 'a2', 'a3'].map((id) => owner.append('a', id)))
  expect(await owner.next('a')).toBe('a1')
  expect(await owner.next('a')).toBe('a2')
  owner.taken[1]?.record.giveBack()
  owner.taken[0]?.record.giveBack()
  expect(owner.lent()).toBe(1)
  expect(await owner.drain('a')).toEqual(['a1', 'a2', 'a3'])
})

test('what has waited for too long is taken out before Kafka deletes it, and the rest is not', async () => {
  const of = await createQueueTopics()
  const first = await own(of)
  await Promise.all(['a1', 'b1', 'a2'].map((id) => first.append(id.slice(0, 1), id)))
  const maxAgeMs = 3_000
  const second = await own(of, undefined, { maxAgeMs })
  expect(await second.next('b')).toBe('b1')
  const appendedMs = second.taken[0]?.record.timestampMs ?? 0
  await until('they are too old', () => Date.now() > appendedMs + maxAgeMs)
  await second.append('a', 'a3')
  await until('the old ones are taken out', async () => {
    await look(of, second)
    return second.expired.length === 2
  })
  expect(second.expired.map(({ id }) => id)).toEqual(['a1', 'a2'])
  for (const { record } of second.expired) record.settle()
  expect(await second.drain('a')).toEqual(['a3'])
})

test('what waits for a destination is given up a few at a time, in its order, and nothing that comes later', async () => {
  const first = await own(await createQueueTopics())
  const ids = Array.from({ length: 1_000 }, (_, index) => `a${index}`)
  await Promise.all(ids.map((id) => first.append('a', id)))
  await first.append('b', 'b1')
  const taken = await first.next('a')
  first.queue.drop(first.owners.codeOf('a', 'fresh'), Infinity)
  await first.append('a', 'later')
  const given: string[] = []
  await until('all are given up', () => {
    expect(first.dropped.length).toBeLessThanOrEqual(256)
    for (const { id, record } of first.dropped.splice(0)) {
      given.push(id)
      record.settle()
    }
    return given.length === ids.length - 1
  })
  // What is under way is not given up.
  expect([taken, ...given]).toEqual(ids)
  expect(await first.drain('a')).toEqual(['later'])
  expect(await first.drain('b')).toEqual(['b1'])
})

test('the next owner gives up only what came before the order', async () => {
  const of = await createQueueTopics()
  const first = await own(of)
  await first.append('a', 'before')
  await first.append('a', 'after')
  const [, after] = await readAll(of.topic)
  await first.queue.flush()
  const second = await own(of)
  second.queue.drop(second.owners.codeOf('a', 'fresh'), Number(after?.timestamp) - 1)
  const dropped = await until('it is given up', () => second.dropped[0])
  dropped.record.settle()
  expect(dropped.id).toBe('before')
  await until('the other one waits', () => second.queue.untakenOf(second.owners.codeOf('a', 'fresh')) === 1)
  expect(await second.drain('a')).toEqual(['after'])
})

test('an owner knows since when the oldest message waits, and the next one finds it out', async () => {
  const of = await createQueueTopics()
  const first = await own(of)
  const beganMs = Date.now()
  const ids = Array.from({ length: blockSize }, (_, index) => `a${index}`)
  await Promise.all(ids.map((id) => first.append('a', id)))
  const code = first.owners.codeOf('a', 'fresh')
  expect(first.queue.oldestOf(code)).toBeGreaterThanOrEqual(beganMs)
  await first.queue.flush()
  // A mark says whose the records are, and not when they were written.
  const second = await own(of)
  const same = second.owners.codeOf('a', 'fresh')
  expect(second.queue.oldestOf(same)).toBeUndefined()
  await second.queue.learnTimes()
  const [oldest] = await readAll(of.topic)
  expect(second.queue.oldestOf(same)).toBe(Number(oldest?.timestamp))
})
