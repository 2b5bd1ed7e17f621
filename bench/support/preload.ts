import { type Message, Partitioners } from 'kafkajs'
import { BenchmarkFailure } from './failure.ts'
import { plainKafka } from './plain-kafka.ts'

const batchRecords = 500

/**
 * Writes the records 0 to `count` - 1 to an empty topic, as an upstream service would, each exactly once. The
 * producer is idempotent, because the partitions of a new topic sometimes refuse the first writes. Without
 * sequence numbers, the client would then write the records of the other partitions again.
 */
export async function preload(
  brokers: readonly string[],
  topic: string,
  count: number,
  recordAt: (index: number) => Message,
): Promise<void> {
  const kafka = plainKafka(brokers)
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner, idempotent: true })
  const admin = kafka.admin()
  await Promise.all([producer.connect(), admin.connect()])
  try {
    for (let start = 0; start < count; start += batchRecords) {
      const length = Math.min(batchRecords, count - start)
      const messages = Array.from({ length }, (_, index) => recordAt(start + index))
      await producer.send({ topic, messages, acks: -1 })
    }
    const offsets = await admin.fetchTopicOffsets(topic)
    const written = offsets.reduce((sum, { low, high }) => sum + Number(high) - Number(low), 0)
    if (written !== count) {
      throw new BenchmarkFailure(`${topic} holds ${written} records after ${count} were written`)
    }
  } finally {
    await Promise.all([producer.disconnect(), admin.disconnect()])
  }
}
