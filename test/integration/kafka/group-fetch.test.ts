import type { Kafka, RequestEvent } from 'kafkajs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createTopic, produce, randomPrefix } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { workerKafka } from '../../support/worker-kafka.ts'
import { type Member, startMember } from './member.ts'

/**
 * Tests of the fetches that a member sends to its broker. Other tests, those of the consumer, check that a
 * member gets all records.
 */

const partitions = 40
let prefix = ''
let member: Member | undefined

beforeEach(() => {
  prefix = randomPrefix()
})

afterEach(async () => {
  await member?.consumer.stop()
  member = undefined
})

type Fetch = { atMs: number; answerBytes: number }

/** Returns a client, and a list that gets each fetch of its consumers. */
function watched(): { kafka: Kafka; fetches: Fetch[] } {
  const kafka = workerKafka()
  const fetches: Fetch[] = []
  const make = kafka.consumer.bind(kafka)
  kafka.consumer = (config) => {
    const consumer = make(config)
    consumer.on(consumer.events.REQUEST, ({ payload: { apiName, size } }: RequestEvent) => {
      if (apiName === 'Fetch') fetches.push({ atMs: Date.now(), answerBytes: size })
    })
    return consumer
  }
  return { kafka, fetches }
}

async function joined(
  topics: readonly string[],
): Promise<{ fetches: Fetch[]; received: Member['received'] }> {
  const { kafka, fetches } = watched()
  member = await startMember({
    groupId: `${prefix}group`,
    kafka,
    topics: topics.map((topic) => ({ topic, waitMs: 0 })),
  })
  return { fetches, received: member.received }
}

describe('a member with three topics of forty partitions', () => {
  test('asks four times a second while nothing comes, and is answered in a few bytes', async () => {
    const topics = ['a', 'b', 'c'].map((name) => prefix + name)
    for (const topic of topics) await createTopic(topic, { partitions })
    const { fetches } = await joined(topics)
    await until('it has been quiet for some fetches', () => fetches.length >= 20)
    const quiet = fetches.slice(-9)
    const elapsedMs = (quiet.at(-1)?.atMs ?? 0) - (quiet[0]?.atMs ?? 0)
    expect(elapsedMs).toBeGreaterThan(8 * 200)
    // The answer has only the correlation id, the throttle time, an error code, the session and no topics.
    expect(quiet.map(({ answerBytes }) => answerBytes)).toEqual(Array(9).fill(18))
  })

  test('is given the first record after a silence at once', async () => {
    const topic = `${prefix}a`
    await createTopic(topic, { partitions })
    const { fetches, received } = await joined([topic])
    const lateMs: number[] = []
    for (let count = 1; count <= 7; count++) {
      const before = fetches.length
      await until('it is quiet', () => fetches.slice(before).filter(isEmpty).length >= 2)
      await produce(topic, [{ key: `key-${count}`, value: String(count) }])
      const sentMs = Date.now()
      await until('it has come', () => received.length === count, { everyMs: 1 })
      lateMs.push((received.at(-1)?.atMs ?? Infinity) - sentMs)
    }
    expect(received.map(({ text }) => text)).toEqual(['1', '2', '3', '4', '5', '6', '7'])
    expect(lateMs.sort((a, b) => a - b)[3]).toBeLessThan(60)
  })
})

function isEmpty({ answerBytes }: Fetch): boolean {
  return answerBytes === 18
}
