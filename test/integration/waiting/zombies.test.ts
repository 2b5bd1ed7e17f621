import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type RecordProducer, startProducer } from '../../../src/kafka/produce/producer.ts'
import { createPartitionReader, type PartitionReader } from '../../../src/kafka/read/partition-reader.ts'
import { loadMarks } from '../../../src/waiting/load-marks.ts'
import { lookAt } from '../../../src/waiting/look.ts'
import type { UnitQueue } from '../../../src/waiting/unit-queue.ts'
import { until } from '../../support/until.ts'
import { workerKafka } from '../../support/worker-kafka.ts'
import {
  createQueueTopics,
  newMessage,
  type Owner,
  openOwner,
  type OwnerSettings,
  type QueueTopics,
} from './queue-owner.ts'

/** A zombie was suspended, has lost its unit, and appends what another owner has too. */

let producer: RecordProducer
let reader: PartitionReader
const open: UnitQueue[] = []

beforeAll(async () => {
  const kafka = workerKafka()
  producer = await startProducer({ kafka, maxRecordBytes: 100_000, onStalled() {} })
  reader = createPartitionReader(kafka, { keepsOpen: true })
})

afterEach(async () => {
  await Promise.all(open.splice(0).map((queue) => queue.close()))
})

afterAll(async () => {
  await producer?.stop()
  await reader?.stop()
})

/** Begins the tenure after that with the epoch `former`. */
async function own(of: QueueTopics, former: number, settings: OwnerSettings = {}): Promise<Owner> {
  const owner = await openOwner({ reader, producer }, of, { epoch: former }, settings)
  open.push(owner.queue)
  return owner
}

/** Looks at the log, as all members do, until something holds. */
async function look({ topic }: QueueTopics, { queue }: Owner, holds: () => boolean): Promise<void> {
  await until('it has looked', async () => {
    queue.tick()
    const nowMs = performance.now()
    if (queue.isLookDue(nowMs)) await lookAt(new Map([[0, queue]]), { reader, topic, nowMs })
    return holds()
  })
}

function hasOf({ queue, owners }: Owner, destinationId: string): number {
  return queue.untakenOf(owners.codeOf(destinationId, 'fresh'))
}

test('what a zombie appends when the next owner has begun its topic is void, also for later owners', async () => {
  const of = await createQueueTopics()
  const zombie = await own(of, 0)
  await zombie.appendNew(1)
  const second = await own(of, 1)
  expect(second.queue.before.has(newMessage(1))).toBe(true)
  second.begin()
  await second.appendNew(2)
  await Promise.all([zombie.appendNew(2), zombie.appendNew(3)])
  await second.append('b', 'b1')
  await until('it knows all', () => second.queue.undone === 3)
  expect(await second.drain('a')).toEqual(['m1', 'm2'])
  await second.queue.flush()
  const third = await own(of, 2)
  expect(third.queue.undone).toBe(1)
  // The second owner has this message, so it isn't in the queue.
  expect(third.queue.before.has(newMessage(3))).toBe(false)
})

test('an append of a former owner counts until the next owner has begun its topic', async () => {
  const of = await createQueueTopics()
  const first = await own(of, 0)
  const second = await own(of, 1)
  second.queue.begin('deletions')
  await look(of, second, () => !second.queue.isLookDue(performance.now()))
  await first.appendNew(1)
  await second.append('b', 'b1')
  await until('it knows both', () => second.queue.undone === 2)
  expect(await second.drain('a')).toEqual(['m1'])
  expect(second.queue.before.has(newMessage(1))).toBe(true)
})

test('a zombie that takes itself for the owner says nothing of what later owners append', async () => {
  const of = await createQueueTopics()
  const zombie = await own(of, 0)
  zombie.begin()
  await zombie.appendNew(1)
  const second = await own(of, 1)
  await second.appendNew(2)
  await zombie.append('b', 'b1')
  await until('it knows both', () => zombie.queue.undone === 3)
  await zombie.queue.flush()
  const third = await own(of, 2)
  expect(await third.drain('a')).toEqual(['m1', 'm2'])
})

/** A former owner appends a message after its successor, which has not looked at the log since then. */
async function appendedTooLate() {
  const of = await createQueueTopics()
  const zombie = await own(of, 0)
  const second = await own(of, 1)
  second.begin()
  await second.appendNew(1)
  await zombie.appendNew(1)
  return { of, second }
}

test('an owner that loses its unit looks for void records first, and the next one waits for this', async () => {
  const { of, second } = await appendedTooLate()
  second.lose()
  expect(second.lent()).toBe(1)
  await look(of, second, () => second.lent() === 0)
  const third = await own(of, 2)
  expect(await third.drain('a')).toEqual(['m1'])
})

test('what a zombie appends after the last look of its successor is void for the owners that follow', async () => {
  const of = await createQueueTopics()
  const zombie = await own(of, 0)
  const second = await own(of, 1)
  second.begin()
  await second.appendNew(1)
  await second.appendNew(2)
  second.lose()
  await look(of, second, () => second.lent() === 0)
  await zombie.appendNew(1)
  const third = await own(of, 2)
  await zombie.appendNew(2)
  await look(of, third, () => third.queue.isEmpty || !third.queue.isLookDue(performance.now()))
  expect(await third.drain('a')).toEqual(['m1', 'm2'])
  await third.queue.flush()
  const fourth = await own(of, 3)
  expect(fourth.queue.undone).toBe(0)
})

test('an owner that stops waits for what it reads of the log', async () => {
  const { of, second } = await appendedTooLate()
  await lookAt(new Map([[0, second.queue]]), { reader, topic: of.topic, nowMs: performance.now() })
  await second.queue.flush()
  expect(second.lent()).toBe(0)
  const third = await own(of, 2)
  expect(await third.drain('a')).toEqual(['m1'])
})

test('a message stays that an owner found in the queue, and of which an owner before it says later that it is void', async () => {
  const of = await createQueueTopics()
  const first = await own(of, 0)
  const second = await own(of, 1)
  second.begin()
  await second.appendNew(1)
  await first.appendNew(2)
  // The second one is suspended now, and has neither seen nor delivered the second message.
  const third = await own(of, 2)
  third.begin()
  if (!third.queue.before.has(newMessage(2))) await third.appendNew(2)
  await third.append('b', 'b1')
  await look(of, second, () => hasOf(second, 'b') === 1)
  await Promise.all([second.queue.flush(), third.queue.flush()])
  const fourth = await own(of, 3)
  expect(await fourth.drain('a')).toEqual(['m1', 'm2'])
})

test('an owner of which nothing is known to be committed calls nothing void', async () => {
  const of = await createQueueTopics()
  const zombie = await own(of, 0)
  const second = await own(of, 1, { hasBegun: false })
  second.begin()
  await second.append('b', 'b1')
  await zombie.appendNew(1)
  await zombie.append('b', 'b2')
  await look(of, second, () => hasOf(second, 'b') === 2)
  expect(second.queue.before.has(newMessage(1))).toBe(true)
})

test('a mark of void records names one of them, by which the next owner knows a log that has lost them', async () => {
  const of = await createQueueTopics()
  const zombie = await own(of, 0)
  const { queue, owners, ...second } = await own(of, 1)
  second.begin()
  await second.append('b', 'b1')
  await zombie.appendNew(1)
  await second.append('b', 'b2')
  await until('it knows both', () => queue.undone === 2)
  await queue.flush()
  const { signal } = new AbortController()
  const topicId = (await reader.topicId({ topic: of.topic, partition: 0, signal })) ?? ''
  const marks = await loadMarks({ reader, topic: of.marksTopic, unit: 0, topicId, owners, signal })
  expect([...marks.void]).toEqual([1])
  expect(marks.lastPlace).toMatchObject({ offset: 1 })
})
