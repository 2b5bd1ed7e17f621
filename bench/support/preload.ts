import { type Message, Partitioners } from 'kafkajs'
import { messageAt, sourceId, userIdOf } from './messages.ts'
import { plainKafka } from './plain-kafka.ts'

const batchRecords = 500

/** Writes messages 0 to `count` - 1 to a topic, keyed by user, as an upstream service would. */
export async function preload(brokers: readonly string[], topic: string, count: number): Promise<void> {
  const producer = plainKafka(brokers).producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  try {
    for (let start = 0; start < count; start += batchRecords) {
      const messages = recordsFrom(start, Math.min(start + batchRecords, count))
      await producer.send({ topic, messages, acks: -1 })
    }
  } finally {
    await producer.disconnect()
  }
}

function recordsFrom(start: number, end: number): Message[] {
  const records: Message[] = []
  for (let index = start; index < end; index++) {
    records.push({ key: userIdOf(index), value: messageAt(index), headers: { 'source-id': sourceId } })
  }
  return records
}
