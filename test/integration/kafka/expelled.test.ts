import { expect, test } from 'vitest'
import { createTopic, produce, randomPrefix } from '../../support/kafka.ts'
import { until } from '../../support/until.ts'
import { startMember } from './member.ts'

const sessionTimeoutMs = 1_500
const times = 3

/** Blocks the process for so long that the group expels this member. */
function standStill(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, sessionTimeoutMs * 2)
}

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
      standStill()
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
