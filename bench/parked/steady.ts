import { setTimeout as delay } from 'node:timers/promises'
import { type Message, Partitioners } from 'kafkajs'
import { plainKafka } from '../support/plain-kafka.ts'

const tickMs = 50
const maxBatchRecords = 1_000

/** Writes the records 0 to `count` - 1 to a topic, each once, at `perS` records a second. */
export async function produceSteadily(
  brokers: readonly string[],
  { topic, count, perS, recordAt }: Plan,
): Promise<void> {
  // There is one send at a time. So the producer's sequence numbers keep a repeated send from writing a
  // record twice.
  const producer = plainKafka(brokers).producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    idempotent: true,
  })
  await producer.connect()
  try {
    const startedMs = performance.now()
    for (let next = 0; next < count;) {
      const dueCount = Math.floor(((performance.now() - startedMs) / 1_000) * perS)
      const end = Math.min(count, dueCount, next + maxBatchRecords)
      if (end === next) await delay(tickMs)
      else {
        const first = next
        const messages = Array.from({ length: end - first }, (_, index) => recordAt(first + index))
        await producer.send({ topic, messages, acks: -1 })
        next = end
        if (end >= dueCount) await delay(tickMs)
      }
    }
  } finally {
    await producer.disconnect()
  }
}

type Plan = { topic: string; count: number; perS: number; recordAt: (number: number) => Message }
