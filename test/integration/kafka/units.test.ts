import type { Message } from 'kafkajs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { maxRememberedOffsets } from '../../../src/kafka/wire/commit-metadata.ts'
import { createTopic, produce, randomPrefix } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { beginMember, committedOffsets, type Member, type MemberOptions, startMember } from './member.ts'
import type { TopicSubscription } from '../../../src/kafka/partitions/topic-subscription.ts'

let events = ''
let changes = ''
let topics: TopicSubscription[] = []
let groupId = ''
const members: Member[] = []

beforeEach(() => {
  const prefix = randomPrefix()
  groupId = `${prefix}group`
  events = `${prefix}events`
  changes = `${prefix}audience-changes`
  topics = [
    { topic: events, waitMs: 0 },
    { topic: changes, waitMs: 0, needsState: true, hasWindow: false },
  ]
})

afterEach(async () => {
  for (const { consumer } of members.splice(0)) await consumer.stop()
})

type Options = Omit<MemberOptions, 'groupId' | 'topics'>

async function join(options: Options = {}): Promise<Member> {
  const member = await startMember({ groupId, topics, ...options })
  members.push(member)
  return member
}

async function begin(options: Options): Promise<Member> {
  const member = await beginMember({ groupId, topics, ...options })
  members.push(member)
  return member
}

async function createTopics(partitions: number): Promise<void> {
  for (const { topic } of topics) await createTopic(topic, { partitions })
}

/** Produces `count` records to each partition. */
async function produceToAll(topic: string, partitions: number, count: number): Promise<void> {
  const messages: Message[] = []
  for (let partition = 0; partition < partitions; partition++) {
    for (let index = 0; index < count; index++) messages.push({ partition, value: `${partition}/${index}` })
  }
  await produce(topic, messages)
}

/** Stops a member. Commits nothing at the stop. */
async function vanish(member: Member): Promise<void> {
  members.splice(members.indexOf(member), 1)
  await member.consumer.stop()
}

async function leave(member: Member): Promise<void> {
  member.consumer.quiesce()
  await member.consumer.commit()
  await vanish(member)
}

const ofTopic = (member: Member, topic: string) => member.received.filter((record) => record.topic === topic)

function unitsOf(member: Member): number[] {
  return [...new Set([...member.consumer.partitions].map(({ id }) => id))].sort((a, b) => a - b)
}

/** Prepares units when the test calls `open`, and records what happens. */
class Book {
  readonly lines: string[] = []
  readonly #gate = Promise.withResolvers<void>()
  isOpen = false

  open(): void {
    this.isOpen = true
    this.#gate.resolve()
  }

  readonly options = {
    prepare: async (unit: number): Promise<void> => {
      this.lines.push(`prepare ${unit}`)
      await this.#gate.promise
    },
    released: (unit: number): void => {
      this.lines.push(`released ${unit}`)
    },
  }
}

function openBook(): Book {
  const book = new Book()
  book.open()
  return book
}

describe('a unit whose state is not there', () => {
  test('gives nothing of the topics that need it, and all of the others', async () => {
    await createTopics(2)
    await produceToAll(events, 2, 50)
    await produceToAll(changes, 2, 50)
    const book = new Book()
    const member = await begin(book.options)
    await until('the events have come', () => ofTopic(member, events).length === 100)
    await until('both are being prepared', () => book.lines.length === 2)
    expect(ofTopic(member, changes)).toEqual([])
    expect(member.consumer.isJoined).toBe(false)
    expect(member.consumer.preparing).toEqual([0, 1])
    expect(await committedOffsets(groupId, [changes])).toEqual({ [`${changes}/0`]: -1, [`${changes}/1`]: -1 })

    book.open()
    await until('the changes have come', () => ofTopic(member, changes).length === 100)
    expect(member.consumer.isJoined).toBe(true)
    expect(member.consumer.preparing).toEqual([])
    expect(book.lines.toSorted()).toEqual(['prepare 0', 'prepare 1'])
  })

  test('is prepared once, whoever joins and leaves meanwhile, and begun in the end', async () => {
    await createTopics(4)
    await produceToAll(changes, 4, 10)
    const first = new Book()
    const one = await begin(first.options)
    await until('all are being prepared', () => first.lines.length === 4)
    const second = openBook()
    const two = await begin(second.options)
    await until('the second has begun', () => two.consumer.isJoined && unitsOf(two).length === 2)
    await until('the first has two', () => unitsOf(one).length === 2)
    await leave(two)
    await until('the first has all again', () => unitsOf(one).length === 4)
    const moved = new Set(second.lines.map((line) => line.replace(/\w+ /, '')))
    first.open()
    await until('it has begun', () => one.consumer.isJoined)
    await until('all has come', () => one.received.length + two.received.length === 40)

    for (const unit of ['0', '1', '2', '3']) {
      const lines = first.lines.filter((line) => line.endsWith(` ${unit}`))
      const once = [`prepare ${unit}`]
      expect(lines).toEqual(moved.has(unit) ? [...once, `released ${unit}`, ...once] : once)
    }
  })

  test('is asked for again when that has failed', async () => {
    await createTopics(1)
    await produceToAll(changes, 1, 1)
    let tries = 0
    const member = await join({
      prepare: async () => {
        if (tries++ === 0) throw new Error('not now')
      },
    })
    await until('the change has come', () => member.received.length === 1)
    expect(tries).toBe(2)
  })
})

/**
 * Starts a member that gets both units, with one unsettled change in each. Then starts a second member, and
 * waits until the first has only one unit.
 */
async function moveOne(options: Options = {}) {
  await createTopics(2)
  await produceToAll(changes, 2, 1)
  const first = openBook()
  const one = await join({ ...first.options, onRecord: () => {}, ...options })
  await until('both are out', () => one.received.length === 2)
  const second = openBook()
  const two = await begin({ ...second.options, ...options })
  await until('one has one unit', () => unitsOf(one).length === 1)
  const [kept] = unitsOf(one)
  const moved = kept === 0 ? 1 : 0
  return { one, two, first, second, moved, out: one.received.find(({ partition }) => partition === moved) }
}

describe('a unit that moves', () => {
  test('is released when nothing of it is out any more, and prepared by its new owner after the last commit', async () => {
    const committedAtPrepare: Record<string, number>[] = []
    const { one, two, first, second, moved, out } = await moveOne()
    const prepare = second.options.prepare
    second.options.prepare = async (unit) => {
      committedAtPrepare.push(await committedOffsets(groupId, [changes]))
      await prepare(unit)
    }
    await until('the second has its events', () =>
      [...two.consumer.partitions].some(({ topic, isWaiting }) => topic === events && !isWaiting),
    )
    expect(first.lines).not.toContain(`released ${moved}`)
    expect(second.lines).toEqual([])
    out?.settle()
    await until('it is released', () => first.lines.includes(`released ${moved}`))
    await until('the second has begun', () => two.consumer.isJoined)
    expect(second.lines).toEqual([`prepare ${moved}`])
    expect((await committedOffsets(groupId, [changes]))[`${changes}/${moved}`]).toBe(1)
    expect(two.received).toEqual([])
    expect(one.received).toHaveLength(2)
  })

  test('is released when the time for it is over', async () => {
    const { first, moved } = await moveOne({ handoverMs: 2_000 })
    expect(first.lines).not.toContain(`released ${moved}`)
    await until('it is released', () => first.lines.includes(`released ${moved}`))
  })

  test('is released at once while it is still prepared', async () => {
    await createTopics(2)
    const book = new Book()
    const one = await begin(book.options)
    await until('both are being prepared', () => book.lines.length === 2)
    await join(openBook().options)
    await until('one has one unit', () => unitsOf(one).length === 1)
    const [kept] = unitsOf(one)
    await until('the other is released', () => book.lines.includes(`released ${kept === 0 ? 1 : 0}`))
    expect(book.lines).not.toContain(`released ${kept}`)
    book.open()
  })
})

test('a member that stops releases its units', async () => {
  await createTopics(2)
  const book = openBook()
  const member = await join(book.options)
  await leave(member)
  expect(book.lines.slice(2).toSorted()).toEqual(['released 0', 'released 1'])
})

/**
 * Starts a member that settles a part of the records, and ends it with `goes`. Writes more changes while
 * there is no member, and when the next member has joined. Returns the changes that the next member received.
 */
async function seenByNext(goes: (member: Member) => Promise<void>) {
  await createTopics(1)
  for (const topic of [events, changes]) await produceToAll(topic, 1, 10)
  const one = await join({ onRecord: (record) => record.offset < 5 && record.settle() })
  await until('all has come', () => one.received.length === 20)
  await one.consumer.commit()
  if (goes === leave) for (const record of one.received) if (record.offset >= 5) record.settle()
  await goes(one)
  await produceToAll(changes, 1, 2)
  const two = await join()
  await produceToAll(changes, 1, 3)
  await until('the rest has come', () => ofTopic(two, changes).at(-1)?.offset === 14)
  return ofTopic(two, changes)
}

describe('a record may have been begun before', () => {
  test('when its owner before has left without a word, up to the end that the partition had then', async () => {
    const received = await seenByNext(vanish)
    expect(received.map(({ offset, mayHaveBegun }) => [offset, mayHaveBegun])).toEqual(
      [5, 6, 7, 8, 9, 10, 11, 12, 13, 14].map((offset) => [offset, offset < 12]),
    )
  })

  test('even when one has come and gone in good order since, without taking it', async () => {
    await createTopics(1)
    await produceToAll(changes, 1, 10)
    const one = await join({ onRecord: (record) => record.offset < 5 && record.settle() })
    await until('all has come', () => one.received.length === 10)
    await one.consumer.commit()
    await vanish(one)
    const two = await join({
      onRecord: (record) => (record.offset === 5 ? record.settle() : record.giveBack()),
    })
    await until('the rest has come', () => two.received.length === 5)
    await leave(two)
    await produceToAll(changes, 1, 2)
    const three = await join()
    await until('the rest has come', () => three.received.length === 6)
    expect(three.received.map(({ offset, mayHaveBegun }) => [offset, mayHaveBegun])).toEqual(
      [6, 7, 8, 9, 10, 11].map((offset) => [offset, offset < 10]),
    )
  })

  test('and was not when its owner before has left in good order', async () => {
    const received = await seenByNext(leave)
    expect(received.map(({ offset }) => offset)).toEqual([10, 11, 12, 13, 14])
    expect(received.some(({ mayHaveBegun }) => mayHaveBegun)).toBe(false)
  })
})

test('a topic without a window is fetched on past a record that is out, and read again from it by the next owner', async () => {
  await createTopics(1)
  const count = 2 * maxRememberedOffsets
  await produceToAll(changes, 1, count)
  const one = await join({ onRecord: (record) => record.offset !== 10 && record.settle() })
  await until('all has come', () => one.received.length === count)
  await one.consumer.commit()
  expect(await committedOffsets(groupId, [changes])).toEqual({ [`${changes}/0`]: 10 })
  await vanish(one)
  const two = await join()
  await until('all has come again', () => two.received.length === count - 10)
})

test('a partition that is full is not fetched from, through a rejoin, until it is not; the others go on', async () => {
  await createTopics(2)
  const one = await join({})
  one.consumer.setPartitionFull(events, 0, true)
  one.consumer.setPartitionFull(events, 7, true)
  await produceToAll(events, 2, 10)
  await produceToAll(changes, 2, 10)
  await until('all others have come', () => one.received.length === 30)
  const two = await join({})
  await leave(two)
  await until('one has all again', () => unitsOf(one).length === 2 && one.consumer.isJoined)
  const full = [...one.consumer.partitions].find(({ topic, id }) => topic === events && id === 0)
  // The partition is still full if this member has kept it. If the partition was with the other member in
  // between, it begins again and isn't full.
  if (full?.isFull === true) {
    await produceToAll(changes, 2, 10)
    await until('all others have come', () => one.received.length + two.received.length === 50)
    expect(ofTopic(one, events).filter(({ partition }) => partition === 0)).toEqual([])
    one.consumer.setPartitionFull(events, 0, false)
  }
  const ofFull = () => [...ofTopic(one, events), ...ofTopic(two, events)].filter((r) => r.partition === 0)
  await until('it has come', () => ofFull().length === 10)
})
