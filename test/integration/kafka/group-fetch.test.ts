import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createTopic, produce, randomPrefix } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { type Member, startMember } from './member.ts'
import { type Fetch, watchedKafka } from './readers.ts'

/**
 * Tests of the fetches that a member sends to its broker. Other tests, those of the consumer, check that a
 * member gets all records.
 */

const partitions = 40
const mostRecords = 20
let prefix = ''
let member: Member | undefined

beforeEach(() => {
  prefix = randomPrefix()
})

afterEach(async () => {
  await member?.consumer.stop()
  member = undefined
})

async function joined(
  topics: readonly string[],
): Promise<{ fetches: Fetch[]; received: Member['received'] }> {
  const { kafka, fetches } = watchedKafka()
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
    const sent: string[] = []
    // A broker that collected records would hold each fetch for the whole of its wait, 250 ms. A machine that
    // does other work may do so with some of them.
    const enoughMs = 200
    let leastMs = Infinity
    while (sent.length < mostRecords && leastMs >= enoughMs) {
      const before = fetches.length
      await until('it is quiet', () => fetches.slice(before).filter(isEmpty).length >= 2)
      sent.push(String(sent.length))
      await produce(
        topic,
        sent.slice(-1).map((value) => ({ key: value, value })),
      )
      await until('it has come', () => received.length === sent.length, { everyMs: 1 })
      leastMs = Math.min(leastMs, fetches.findLast((one) => !isEmpty(one))?.heldMs ?? Infinity)
    }
    expect(received.map(({ text }) => text)).toEqual(sent)
    expect(leastMs).toBeLessThan(enoughMs)
  })
})

function isEmpty({ answerBytes }: Fetch): boolean {
  return answerBytes === 18
}
