import { expect, test } from 'vitest'
import { expelMembers } from '../../support/expel-members.ts'
import { createTopic, produce, randomPrefix } from '../../support/kafka.ts'
import { standStill } from '../../support/stand-still.ts'
import { until } from '../../support/until.ts'
import { startMember } from '../kafka/member.ts'

const sessionTimeoutMs = 1_500
const times = 3

test('a commit that is refused only after the next join does not end what that join has begun', async () => {
  const prefix = randomPrefix()
  const topic = `${prefix}events`
  await createTopic(topic)
  // Commits are in flight all the time, also while the client joins again.
  const { consumer, received } = await startMember({
    groupId: `${prefix}group`,
    topics: [{ topic, waitMs: 0 }],
    onRecord(record) {
      setTimeout(() => record.settle(), record.offset % 500)
    },
    commitIntervalMs: 1,
    sessionTimeoutMs,
  })
  try {
    for (let time = 1; time <= times; time++) {
      await produce(
        topic,
        Array.from({ length: 500 }, (_, index) => ({ value: `${time}-${index}` })),
      )
      await until('some have come', () => received.length > (time - 1) * 500)
      // The group expels the member meanwhile.
      standStill(2 * sessionTimeoutMs)
      const seen = () => new Set(received.map(({ text }) => text)).size
      await until(`all has come after time ${time}`, () => seen() === time * 500 && consumer.isJoined, {
        timeoutMs: 20_000,
      })
    }
  } finally {
    await consumer.stop()
  }
  expect(new Set(received.map(({ text }) => text)).size).toBe(times * 500)
})

test('a member that was expelled is none until it has joined again, though its last commit was a moment ago', async () => {
  const prefix = randomPrefix()
  const topic = `${prefix}events`
  await createTopic(topic)
  const groupId = `${prefix}group`
  const { consumer } = await startMember({ groupId, topics: [{ topic, waitMs: 0 }], commitIntervalMs: 50 })
  try {
    expect(consumer.isMember).toBe(true)
    await expelMembers(groupId)
    await until('it knows that it is none', () => !consumer.isMember, { everyMs: 1 })
    expect(Date.now() - consumer.lastCommitMs).toBeLessThan(6_000)
    await until('it is one again', () => consumer.isMember && consumer.isJoined)
  } finally {
    await consumer.stop()
  }
  expect(consumer.isMember).toBe(false)
})
