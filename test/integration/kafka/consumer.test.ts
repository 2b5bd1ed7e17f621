import { CompressionTypes, type Message } from 'kafkajs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { maxRememberedOffsets } from '../../../src/kafka/wire/commit-metadata.ts'
import { createTopic, otherProgram, produce, randomPrefix } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { committedOffsets, endOffsets, type Member, startMember } from './member.ts'
import type { HeldRecord } from '../../../src/message/held-record.ts'

let prefix = ''
let groupId = ''
const members: Member[] = []

beforeEach(() => {
  prefix = randomPrefix()
  groupId = `${prefix}group`
})

afterEach(async () => {
  for (const { consumer } of members.splice(0)) await consumer.stop()
})

async function join(options: Omit<Parameters<typeof startMember>[0], 'groupId'>): Promise<Member> {
  const member = await startMember({ groupId, ...options })
  members.push(member)
  return member
}

/** Stops a member as the worker does. Waits first until everything that the member took has settled. */
async function leave(member: Member): Promise<void> {
  members.splice(members.indexOf(member), 1)
  member.consumer.quiesce()
  await until('all has settled', () =>
    [...member.consumer.partitions].every(({ heldCount }) => heldCount === 0),
  )
  await member.consumer.commit()
  await member.consumer.stop()
}

function numbered(count: number, { from = 0 } = {}): Message[] {
  return Array.from({ length: count }, (_, index) => ({ key: `key-${index}`, value: `${from + index}` }))
}

function unitsOf(member: Member, topic: string): string[] {
  return member
    .owned()
    .flatMap((name) => (name.startsWith(`${topic}/`) ? [name.slice(topic.length + 1)] : []))
}

const settleIn = (ms: number) => (record: HeldRecord) => void setTimeout(() => record.settle(), ms)

describe('a group of two members', () => {
  const count = 3_000

  test('owns units: partition i of every topic is with the same member', async () => {
    const topics = ['events', 'retry.1s', 'retry.2s'].map((name) => prefix + name)
    for (const topic of topics) await createTopic(topic, { partitions: 5 })
    const subscriptions = topics.map((topic) => ({ topic, waitMs: 0 }))
    const one = await join({ topics: subscriptions })
    expect(one.owned()).toHaveLength(15)
    const two = await join({ topics: subscriptions })
    await until('the partitions are shared', () => one.owned().length + two.owned().length === 15)

    for (const member of [one, two]) {
      const [units = [], ...others] = topics.map((topic) => unitsOf(member, topic))
      expect(units.length).toBeGreaterThanOrEqual(2)
      expect(others).toEqual([units, units])
    }
    expect(new Set([...one.owned(), ...two.owned()]).size).toBe(15)
  })

  test('loses nothing when one joins and when one leaves in good order', async () => {
    const topic = `${prefix}events`
    await createTopic(topic, { partitions: 6 })
    const topics = [{ topic, waitMs: 0 }]
    const one = await join({ topics, onRecord: settleIn(100) })
    await produce(topic, numbered(count))
    await until('the first has a part', () => one.received.length > 0)
    const two = await join({ topics, onRecord: settleIn(100) })
    await produce(topic, numbered(count, { from: count }))
    await until('the second has a part', () => two.received.length > 0)
    await leave(two)
    await produce(topic, numbered(count, { from: 2 * count }))
    const seen = () => new Set([...one.received, ...two.received].map(({ text }) => text))
    await until('all has come', () => seen().size === 3 * count)
    await leave(one)
    expect(await committedOffsets(groupId, [topic])).toEqual(await endOffsets([topic]))
  })

  test('repeats nothing to the one that stays when the other leaves in good order', async () => {
    const topic = `${prefix}events`
    await createTopic(topic, { partitions: 6 })
    const topics = [{ topic, waitMs: 0 }]
    const one = await join({ topics, onRecord: settleIn(100) })
    const two = await join({ topics, onRecord: settleIn(100) })
    await until('the partitions are shared', () => one.owned().length === 3 && two.owned().length === 3)
    await produce(topic, numbered(count))
    await until('the second has a part', () => two.received.length > 0)
    await leave(two)
    await produce(topic, numbered(count, { from: count }))
    await until('all has come', () => one.received.length + two.received.length >= 2 * count)
    await leave(one)
    const seen = [...one.received, ...two.received].map(({ text }) => text)
    expect(seen).toHaveLength(2 * count)
    expect(new Set(seen).size).toBe(2 * count)
  })
})

describe('a commit', () => {
  test('that is asked for while another is under way holds what settled meanwhile', async () => {
    const topic = `${prefix}events`
    await createTopic(topic)
    const member = await join({
      topics: [{ topic, waitMs: 0 }],
      onRecord: () => {},
      commitIntervalMs: 60_000,
    })
    await produce(topic, numbered(2))
    await until('both are there', () => member.received.length === 2)
    member.received[0]?.settle()
    const first = member.consumer.commit()
    member.received[1]?.settle()
    await member.consumer.commit()
    await first
    expect(await committedOffsets(groupId, [topic])).toEqual({ [`${topic}/0`]: 2 })
  })

  test('passes over the markers of a transaction', async () => {
    const topic = `${prefix}events`
    await createTopic(topic)
    const member = await join({ topics: [{ topic, waitMs: 0 }] })
    const producer = otherProgram().producer({ transactionalId: prefix, maxInFlightRequests: 1 })
    await producer.connect()
    try {
      for (const outcome of ['commit', 'abort'] as const) {
        const transaction = await producer.transaction()
        await transaction.send({ topic, messages: [{ value: outcome }] })
        await transaction[outcome]()
      }
    } finally {
      await producer.disconnect()
    }
    // The end lies behind two records and the marker behind each of them. The broker writes the markers after
    // it has answered.
    const end = 4
    const isAt = (offsets: Record<string, number>) => offsets[`${topic}/0`] === end
    await until('both markers are written', async () => isAt(await endOffsets([topic])))
    await until('the end is committed', async () => isAt(await committedOffsets(groupId, [topic])))
    expect(member.received.map(({ text }) => text)).toEqual(['commit'])
  })

  test('that comes late from a former owner does not put the group back', async () => {
    const topic = `${prefix}events`
    await createTopic(topic, { partitions: 2 })
    const topics = [{ topic, waitMs: 0 }]
    const count = 100
    await produce(topic, numbered(count))
    const one = await join({ topics, onRecord: () => {} })
    await until('the first has all', () => one.received.length === count)
    const two = await join({ topics })
    const [moved = ''] = await until('one partition has moved', () =>
      two.owned().length === 1 ? two.owned() : undefined,
    )
    const ends = await endOffsets([topic])
    await until('the new owner has committed its end', async () => {
      return (await committedOffsets(groupId, [topic]))[moved] === ends[moved]
    })
    one.received.find((record) => `${record.topic}/${record.partition}` === moved)?.settle()
    await one.consumer.commit()
    expect((await committedOffsets(groupId, [topic]))[moved]).toBe(ends[moved])
  })

  test('keeps what settled behind a record that did not, for the next owner', async () => {
    const topic = `${prefix}events`
    await createTopic(topic)
    const topics = [{ topic, waitMs: 0 }]
    const one = await join({
      topics,
      onRecord: (record) => record.offset % 100 !== 0 && record.settle(),
    })
    await produce(topic, numbered(5_000))
    await until('all has come', () => one.received.length === 5_000)
    members.splice(members.indexOf(one), 1)
    await one.consumer.commit()
    await one.consumer.stop()
    const two = await join({ topics })
    await produce(topic, numbered(1, { from: 5_000 }))
    await until('the last has come', () => two.received.at(-1)?.text === '5000')
    const unsettled = Array.from({ length: 50 }, (_, index) => index * 100)
    expect(two.received.map(({ offset }) => offset)).toEqual([...unsettled, 5_000])
  })
})

test('fetching stops before a commit can not remember what settled, and goes on afterwards', async () => {
  const topic = `${prefix}events`
  await createTopic(topic)
  const count = 60_000
  const member = await join({
    topics: [{ topic, waitMs: 0 }],
    onRecord: (record) => record.offset > 0 && record.settle(),
  })
  await produce(topic, numbered(count))
  await until('the window is full', () => [...member.consumer.partitions].every(({ isPaused }) => isPaused))
  expect(member.received.length).toBeGreaterThanOrEqual(maxRememberedOffsets)
  expect(member.received.length).toBeLessThan(count)
  member.received[0]?.settle()
  await until('the rest has come', () => member.received.length === count)
})

test.each([
  ['gzip', CompressionTypes.GZIP],
  ['snappy', CompressionTypes.Snappy],
  ['lz4', CompressionTypes.LZ4],
  ['zstd', CompressionTypes.ZSTD],
])('a batch in %s is read', async (_name, compression) => {
  const topic = `${prefix}events`
  await createTopic(topic)
  await produce(topic, numbered(500), { compression })
  const member = await join({ topics: [{ topic, waitMs: 0 }] })
  await until('all has come', () => member.received.length >= 500)
  expect(member.received.map(({ text }) => text)).toEqual(numbered(500).map(({ value }) => value))
})

test('fetching can be stopped and started at any time: all comes, once and in order', async () => {
  const topic = `${prefix}events`
  await createTopic(topic)
  const count = 5_000
  await produce(topic, numbered(count))
  const member = await join({
    topics: [{ topic, waitMs: 0 }],
    onRecord(record) {
      record.settle()
      if (record.offset % 7 === 0) members[0]?.consumer.setFull(true)
    },
  })
  await until(
    'all has come',
    () => {
      member.consumer.setFull(true)
      member.consumer.setFull(false)
      return member.received.length >= count
    },
    { everyMs: 1 },
  )
  expect(member.received.map(({ offset }) => offset)).toEqual(Array.from({ length: count }, (_, at) => at))
})

describe('a topic that waits', () => {
  const appendTime = { 'message.timestamp.type': 'LogAppendTime' }

  test('gives no record early, and none late', async () => {
    const topic = `${prefix}retry.2s`
    const waitMs = 2_000
    const count = 500
    await createTopic(topic, { partitions: 6, settings: appendTime })
    const member = await join({ topics: [{ topic, waitMs }] })
    const worst: number[] = []
    // A machine that stands still for a moment makes all of a round late, and not all of each round.
    for (let round = 0; round < 3 && Math.min(...worst, Infinity) >= 2_000; round++) {
      const before = member.received.length
      for (let sent = 0; sent < count; sent += 25) await produce(topic, numbered(25, { from: before + sent }))
      await until('all has come', () => member.received.length >= before + count)
      expect(new Set(member.received.map(({ text }) => text)).size).toBe(before + count)
      const came = member.received.slice(before)
      const lateMs = came.map(({ atMs, timestampMs }) => atMs - timestampMs - waitMs)
      expect(Math.min(...lateMs)).toBeGreaterThanOrEqual(0)
      worst.push(Math.max(...lateMs))
    }
    process.stdout.write(
      `${count} records of a tier of ${waitMs} ms: the worst came ${worst.join(', then ')} ms late\n`,
    )
    expect(Math.min(...worst)).toBeLessThan(2_000)
  })

  test('gives records of a time that is to come when it has waited for them', async () => {
    const topic = `${prefix}retry.1s`
    const waitMs = 1_000
    await createTopic(topic)
    const producedMs = Date.now()
    const timestamp = String(producedMs + 50 * 60_000)
    await produce(topic, [
      ...numbered(3).map((message) => ({ ...message, timestamp })),
      ...numbered(1, { from: 3 }),
    ])
    const member = await join({ topics: [{ topic, waitMs }] })
    await until('all have come', () => member.received.length === 4)
    expect(member.received.map(({ text }) => text)).toEqual(['0', '1', '2', '3'])
    expect(Math.min(...member.received.map(({ atMs }) => atMs))).toBeGreaterThanOrEqual(producedMs + waitMs)
  })

  test('for an hour keeps nothing else from coming', async () => {
    const events = `${prefix}events`
    const hour = `${prefix}retry.1h`
    const second = `${prefix}retry.1s`
    for (const topic of [events, hour, second]) {
      await createTopic(topic, { partitions: 3, settings: appendTime })
    }
    await produce(hour, numbered(300))
    const member = await join({
      topics: [
        { topic: events, waitMs: 0 },
        { topic: hour, waitMs: 3_600_000 },
        { topic: second, waitMs: 1_000 },
      ],
    })
    await until('the hour is waited for', () => {
      const waiting = [...member.consumer.partitions].filter(({ topic }) => topic === hour)
      return waiting.every(({ headDueMs }) => headDueMs > Date.now() + 3_500_000)
    })
    await produce(second, numbered(300))
    await produce(events, numbered(300))
    await until('all others have come', () => member.received.length >= 600)
    expect(member.received.filter(({ topic }) => topic === hour)).toEqual([])
  })
})
