import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type RecordProducer, startProducer } from '../../../src/kafka/produce/producer.ts'
import { createPartitionReader, type PartitionReader } from '../../../src/kafka/read/partition-reader.ts'
import type { HeldRecord } from '../../../src/message/held-record.ts'
import { WaitingQueues } from '../../../src/waiting/queues.ts'
import { quietLog } from '../../support/emitted-lines.ts'
import { produce } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { workerKafka } from '../../support/worker-kafka.ts'
import { createQueueTopics, partitionOf, type QueueTopics } from './queue-owner.ts'

/** The queues of several units on a real Kafka: whose messages come first. */

const units = [0, 1, 2]
const destinations = 5
const each = 60
/** The time between two messages, in milliseconds. */
const everyMs = 400

let producer: RecordProducer
let reader: PartitionReader
const open: WaitingQueues[] = []

beforeAll(async () => {
  const kafka = workerKafka()
  producer = await startProducer({ kafka, maxRecordBytes: 100_000, onStalled() {} })
  reader = createPartitionReader(kafka, { keepsOpen: true, fetchBytes: 4_096 })
})

afterAll(async () => {
  await producer?.stop()
  await reader?.stop()
})

afterEach(async () => {
  await Promise.all(open.splice(0).map((queues) => queues.stop()))
})

type Taken = { readonly record: HeldRecord; readonly number: number }

async function own(
  of: QueueTopics,
  through = reader,
  hasRoom = () => true,
): Promise<{ queues: WaitingQueues; taken: Taken[] }> {
  const taken: Taken[] = []
  const calls = { lend() {}, giveBack() {}, isOtherFrom() {}, isOtherLog() {} }
  const partitions = units.map(() => partitionOf({}, calls))
  const queues = new WaitingQueues({
    ...of,
    reader: through,
    producer,
    group: { pulled: (_topic, unit) => partitions[unit], isReadByAll: () => true },
    take: (record, { value }) => taken.push({ record, number: Number(value) }),
    expire: unexpected,
    drop: unexpected,
    maxAgeMs: () => Infinity,
    onWaiting() {},
    onReady() {},
    onLost: unexpected,
    hasRoom,
    isOpen: true,
    cacheBytes: 1_000_000,
    log: quietLog,
  })
  open.push(queues)
  await Promise.all(units.map((unit) => queues.prepare(unit)))
  return { queues, taken }
}

function unexpected(): never {
  throw new Error('a message was given up')
}

/** Messages of some destinations that take turns, in units without any order. They get older with time. */
async function fill({ topic }: QueueTopics): Promise<void> {
  const startMs = Date.now() - 3_600_000
  const messages = Array.from({ length: destinations * each }, (_, number) => ({
    value: String(number),
    partition: (Math.imul(number + 1, 0x9e3779b1) >>> 16) % units.length,
    timestamp: String(startMs + number * everyMs),
    headers: { 'destination-id': `d${number % destinations}` },
  }))
  await produce(topic, messages)
}

/** Lets all destinations take their messages one by one, in turn. Returns the numbers as they came. */
async function drain({ queues, taken }: { queues: WaitingQueues; taken: Taken[] }): Promise<number[]> {
  for (let round = 0; round < each; round++)
    for (let one = 0; one < destinations; one++) {
      const before = taken.length
      expect(queues.pull(`d${one}`, 'fresh', 1)).toBe(1)
      ;(await until('it is read', () => taken[before])).record.settle()
    }
  expect([...queues.counts()]).toEqual([])
  return taken.map(({ number }) => number)
}

/** Returns by how many places a message came too early or too late at most. */
function mostOutOfPlace(numbers: readonly number[]): number {
  return Math.max(...numbers.map((number, place) => Math.abs(number - place)))
}

test('a destination gets the oldest of all units first', async () => {
  const of = await createQueueTopics(units.length)
  await fill(of)
  const numbers = await drain(await own(of))
  expect(numbers.toSorted((a, b) => a - b)).toEqual(numbers.map((_, place) => place))
  // Times are known to the second.
  expect(mostOutOfPlace(numbers)).toBeLessThanOrEqual(2 * destinations)
})

test('so it does after a takeover, when marks tell whose the messages are, and not when they came', async () => {
  const of = await createQueueTopics(units.length)
  await fill(of)
  const first = await own(of)
  await first.queues.flush()
  await first.queues.stop()
  const numbers = await drain(await own(of))
  expect(numbers.toSorted((a, b) => a - b)).toEqual(numbers.map((_, place) => place))
  // A fetch brings some twenty messages of one unit, and only then it is known when they came.
  expect(mostOutOfPlace(numbers)).toBeLessThanOrEqual(each)
})

test('a unit whose log can not be read keeps no room from the others, and goes on once it can be', async () => {
  const of = await createQueueTopics(units.length)
  await fill(of)
  const readable = Promise.withResolvers<void>()
  const { queues, taken } = await own(of, {
    ...reader,
    async piece(where) {
      if (where.partition === 1) await readable.promise
      return reader.piece(where)
    },
  })
  /** The destination has room for one message. */
  const takeOne = (): boolean => {
    if (queues.wantedOf('d0') === 0) queues.pull('d0', 'fresh', 1)
    for (const { record } of taken) record.settle()
    return false
  }
  const ofOthers = (): boolean => takeOne() || taken.length >= 20
  await until('messages of other units come', ofOthers)
  expect(taken.every(({ record }) => record.partition !== 1)).toBe(true)
  readable.resolve()
  await until('all come', () => takeOne() || taken.length === each)
  const inUnit = taken.filter(({ record }) => record.partition === 1).map(({ number }) => number)
  expect(inUnit).toEqual(inUnit.toSorted((a, b) => a - b))
  expect(inUnit.length).toBeGreaterThan(0)
})

test('what was pulled is handed on only while there is room for it', async () => {
  const of = await createQueueTopics(units.length)
  await fill(of)
  let room = 20
  const { queues, taken } = await own(of, reader, () => taken.length < room)
  for (let one = 0; one < destinations; one++) queues.pull(`d${one}`, 'fresh', each)
  await until('the room is used', () => taken.length === room)
  room += 30
  await until('that is used too', () => taken.length === room)
  expect(queues.wanted).toBe(destinations * each - room)
  room = Infinity
  await until('all come', () => taken.length === destinations * each)
  for (const unit of units) {
    const ofOne = taken.filter(
      ({ record, number }) => record.partition === unit && number % destinations === 0,
    )
    expect(ofOne.map(({ number }) => number)).toEqual(
      ofOne.map(({ number }) => number).toSorted((a, b) => a - b),
    )
  }
})
