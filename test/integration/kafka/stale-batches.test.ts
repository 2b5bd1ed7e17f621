import { setTimeout as passTime } from 'node:timers/promises'
import { Partitioners } from 'kafkajs'
import { expect, onTestFinished, test } from 'vitest'
import { createTopic, otherProgram, randomPrefix } from '../../support/kafka.ts'
import { expelMembers } from '../../support/expel-members.ts'
import { until } from '../../support/until.ts'
import { committedOffsets, endOffsets, startMember } from './member.ts'

const partitionCount = 8
const expulsions = 10
const everyMs = 350
/**
 * The longest time until a record settles, in milliseconds. It is longer than a join takes, so records are
 * unsettled whenever the member begins its partitions again.
 */
const longestWorkMs = 250

/**
 * Starts to write a record every few milliseconds, to each partition in turn. The returned function stops it.
 */
async function startTrickle(topic: string): Promise<() => Promise<void>> {
  const producer = otherProgram().producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  const ending = new AbortController()
  const producing = (async () => {
    for (let count = 0; !ending.signal.aborted; count++) {
      await producer.send({ topic, messages: [{ partition: count % partitionCount, value: `${count}` }] })
      await passTime(5)
    }
  })()
  return async () => {
    ending.abort()
    await producing
    await producer.disconnect()
  }
}

test('a member that is thrown out of its group again and again while batches are under way commits past nothing that it has not settled', async () => {
  const prefix = randomPrefix()
  const [topic, groupId] = [`${prefix}events`, `${prefix}group`]
  await createTopic(topic, { partitions: partitionCount })
  const settled = new Set<string>()
  let taken = 0
  const member = await startMember({
    groupId,
    topics: [{ topic, waitMs: 0 }],
    commitIntervalMs: 50,
    handoverMs: 1_000,
    onRecord(record) {
      taken++
      setTimeout(
        () => {
          settled.add(`${record.topic}/${record.partition}/${record.offset}`)
          record.settle()
        },
        // 37 has no common divisor with the longest time, so neighbouring records have very different times.
        (taken * 37) % longestWorkMs,
      )
    },
  })
  onTestFinished(() => member.consumer.stop())
  const stop = await startTrickle(topic)

  /** Returns the records below the committed offsets that are not settled. */
  async function passedOver(): Promise<string[]> {
    const committed = await committedOffsets(groupId, [topic])
    return Object.entries(committed).flatMap(([name, end]) =>
      Array.from({ length: Math.max(0, end) }, (_, offset) => `${name}/${offset}`).filter(
        (record) => !settled.has(record),
      ),
    )
  }

  for (let count = 0; count < expulsions; count++) {
    await passTime(everyMs)
    await expelMembers(groupId)
    expect(await passedOver()).toEqual([])
  }
  await stop()
  const ends = await endOffsets([topic])
  await until('all is settled and committed', async () => {
    await member.consumer.commit()
    const committed = await committedOffsets(groupId, [topic])
    return Object.entries(ends).every(([name, end]) => committed[name] === end)
  })
  expect(await passedOver()).toEqual([])
})
