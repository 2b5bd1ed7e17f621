import { setTimeout as passTime } from 'node:timers/promises'
import { Partitioners } from 'kafkajs'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import { createTopic, otherProgram, randomPrefix } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import {
  beginMember,
  committedOffsets,
  type Member,
  type MemberOptions,
  startMember,
} from '../kafka/member.ts'

const partitions = 40
const everyMs = 100
/**
 * The limit on a standstill of units that stay, in milliseconds. A standstill lasts from the time at which
 * the broker has a record to the time at which the member takes it.
 */
const mostStandstillMs = 500

const members: Member[] = []

afterEach(async () => {
  await Promise.all(members.splice(0).map(({ consumer }) => consumer.stop()))
})

async function join(options: MemberOptions): Promise<Member> {
  const member = await startMember(options)
  members.push(member)
  return member
}

/** Starts to write to each partition, again and again. The returned function stops it. */
async function startWriting(topic: string): Promise<() => Promise<void>> {
  const producer = otherProgram().producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  const ending = new AbortController()
  const messages = Array.from({ length: partitions }, (_, partition) => ({ partition, value: 'x' }))
  const write = async (): Promise<void> => {
    while (!ending.signal.aborted) {
      await producer.send({ topic, messages })
      await passTime(everyMs)
    }
  }
  const writing = write()
  onTestFinished(() => producer.disconnect())
  return async () => {
    ending.abort()
    await writing
  }
}

/**
 * Returns, for each partition of a topic, the longest time that a record waited at the broker until this
 * member took it. Ignores records that were taken before `sinceMs`.
 */
function standstills({ received }: Member, topic: string, sinceMs: number): Map<string, number> {
  const longest = new Map<string, number>()
  for (const record of received) {
    if (record.topic !== topic || record.atMs < sinceMs) continue
    const name = `${topic}/${record.partition}`
    longest.set(name, Math.max(longest.get(name) ?? 0, record.atMs - record.timestampMs))
  }
  return longest
}

test('units that stay go on while other members join and leave', async () => {
  const prefix = randomPrefix()
  const [topic, waiting] = [`${prefix}events`, `${prefix}retry.1h`]
  // With append times, a record's wait begins when the broker has the record. The speed of the producer
  // doesn't matter in this test.
  await createTopic(topic, { partitions, settings: { 'message.timestamp.type': 'LogAppendTime' } })
  await createTopic(waiting, { partitions })
  const options = {
    groupId: `${prefix}group`,
    topics: [
      { topic, waitMs: 0 },
      { topic: waiting, waitMs: 3_600_000 },
    ],
  }
  for (let count = 0; count < 4; count++) await join(options)
  const areShared = () =>
    members.every(({ consumer }) => consumer.isJoined) &&
    members.reduce((sum, member) => sum + member.owned().length, 0) === 2 * partitions
  await until('all partitions are begun', areShared, { timeoutMs: 30_000 })
  const stopWriting = await startWriting(topic)
  await until('each member takes records', () => members.every(({ received }) => received.length > 100))

  const owned = [members.map((member) => member.owned())]
  const sinceMs = Date.now()
  const fifth = await join(options)
  await until('all partitions are begun', areShared, { timeoutMs: 30_000 })
  owned.push(members.map((member) => member.owned()))
  await fifth.consumer.stop()
  members.splice(members.indexOf(fifth), 1)
  await until('all partitions are begun', areShared, { timeoutMs: 30_000 })
  await passTime(2 * everyMs)
  await stopWriting()

  owned.push(members.map((member) => member.owned()))
  const stayed = members.flatMap((member, index) =>
    [...standstills(member, topic, sinceMs)].filter(([name]) =>
      owned.every((ofMembers) => ofMembers[index]?.includes(name) === true),
    ),
  )
  expect(stayed.length).toBeGreaterThan(partitions / 2)
  expect(stayed.filter(([, longestMs]) => longestMs >= mostStandstillMs)).toEqual([])
})

test('a partition that could not be begun is begun seconds after it can be', async () => {
  const prefix = randomPrefix()
  const [topic, late] = [`${prefix}events`, `${prefix}retry.1h`]
  await createTopic(topic, { partitions: 6 })
  const { consumer } = await join({
    groupId: `${prefix}group`,
    topics: [
      { topic, waitMs: 0 },
      { topic: late, waitMs: 3_600_000 },
    ],
    partitions: 6,
  })
  const isBegun = () => [...consumer.partitions].every(({ isWaiting }) => !isWaiting)
  expect(isBegun()).toBe(false)
  await createTopic(late, { partitions: 6 })
  const madeMs = Date.now()
  await until('all are begun', isBegun, { timeoutMs: 40_000 })
  expect(Date.now() - madeMs).toBeLessThan(10_000)
})

test('what nobody has ever begun is begun at once by whoever is given it, though its unit was in use', async () => {
  const prefix = randomPrefix()
  const [topic, late] = [`${prefix}events`, `${prefix}retry.1h`]
  await createTopic(topic, { partitions: 6 })
  const options = {
    groupId: `${prefix}group`,
    topics: [
      { topic, waitMs: 0 },
      { topic: late, waitMs: 3_600_000 },
    ],
    partitions: 6,
    // A member that waits this long fails the test.
    handoverMs: 60_000,
  }
  await join(options)
  await until('its units are in use', async () => {
    const committed = await committedOffsets(options.groupId, [topic])
    return Object.values(committed).every((offset) => offset >= 0)
  })
  const second = await beginMember(options)
  members.push(second)
  await until('it has its units', () => second.owned().length === 6, { timeoutMs: 10_000 })
  const areBegun = () =>
    members.every(({ consumer }) => [...consumer.partitions].every(({ isWaiting }) => !isWaiting))
  await createTopic(late, { partitions: 6 })
  const madeMs = Date.now()
  await until('all are begun', areBegun, { timeoutMs: 90_000 })
  expect(Date.now() - madeMs).toBeLessThan(10_000)
})
