import { randomBytes } from 'node:crypto'
import type { KafkaMessage } from 'kafkajs'
import { BenchmarkFailure } from './failure.ts'
import { plainKafka } from './plain-kafka.ts'

const idleTimeoutMs = 60_000

/**
 * Calls `onRecord` with all records that a topic has now, in order within each partition. Commits nothing.
 * Fails if nothing arrives for a minute.
 */
export async function readTopic(
  brokers: readonly string[],
  topic: string,
  onRecord: (record: KafkaMessage, partition: number) => void,
): Promise<void> {
  const kafka = plainKafka(brokers)
  const missing = await partitionsWithRecords(brokers, topic)
  if (missing.size === 0) return
  const consumer = kafka.consumer({ groupId: `${topic}.reader-${randomBytes(3).toString('hex')}` })
  const { promise: allRead, resolve, reject } = Promise.withResolvers<void>()
  const giveUp = (): void =>
    reject(new BenchmarkFailure(`reading ${topic}: nothing came for ${idleTimeoutMs / 1_000} s`))
  let timer = setTimeout(giveUp, idleTimeoutMs)
  await consumer.connect()
  try {
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachBatch: async ({ batch: { partition, messages } }) => {
        clearTimeout(timer)
        timer = setTimeout(giveUp, idleTimeoutMs)
        const end = missing.get(partition)
        if (end === undefined) return
        for (const message of messages) {
          if (Number(message.offset) < end) onRecord(message, partition)
          if (Number(message.offset) >= end - 1) missing.delete(partition)
        }
        if (missing.size === 0) resolve()
      },
    })
    await allRead
  } finally {
    clearTimeout(timer)
    await consumer.disconnect()
  }
}

/** Returns the offset after the last record of each partition that has records. */
async function partitionsWithRecords(
  brokers: readonly string[],
  topic: string,
): Promise<Map<number, number>> {
  const admin = plainKafka(brokers).admin()
  await admin.connect()
  try {
    const offsets = await admin.fetchTopicOffsets(topic)
    return new Map(
      offsets
        .filter(({ low, high }) => Number(high) > Number(low))
        .map(({ partition, high }) => [partition, Number(high)]),
    )
  } finally {
    await admin.disconnect()
  }
}
