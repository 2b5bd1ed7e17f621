import { setTimeout as passTime } from 'node:timers/promises'
import { randomBytes } from 'node:crypto'
import { Partitioners } from 'kafkajs'
import { otherProgram } from './kafka.ts'

/** A record that all in-sync replicas have had since `atMs` (epoch milliseconds). */
export type SentRecord = { id: string; partition: number; atMs: number }

const everyMs = 50

/**
 * Starts to produce `track` messages of the source `shop`. Every 50 ms it sends one record, to each partition
 * in turn. A record that can't be written now doesn't delay other partitions.
 */
export async function startLoad(options: {
  brokers: readonly string[]
  topic: string
  partitions: readonly number[]
}): Promise<{ stop(): Promise<SentRecord[]> }> {
  const { brokers, topic, partitions } = options
  const run = randomBytes(4).toString('hex')
  const producer = otherProgram(brokers).producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  const ending = new AbortController()
  const sending: Promise<SentRecord>[] = []

  async function send(id: string, partition: number): Promise<SentRecord> {
    const value = JSON.stringify({
      type: 'track',
      messageId: id,
      userId: `user-${id}`,
      event: 'Order Completed',
    })
    const message = { partition, key: `user-${id}`, value, headers: { 'source-id': 'shop' } }
    await producer.send({ topic, messages: [message], acks: -1 })
    return { id, partition, atMs: Date.now() }
  }

  async function produce(): Promise<void> {
    for (let count = 0; !ending.signal.aborted; count++) {
      const sent = send(`${run}-${count}`, partitions[count % partitions.length] ?? 0)
      // `stop` reports this error. Until then, the error must not end the test's process.
      sent.catch(() => undefined)
      sending.push(sent)
      await passTime(everyMs)
    }
  }

  const producing = produce()
  return {
    async stop() {
      ending.abort()
      await producing
      try {
        return await Promise.all(sending)
      } finally {
        await producer.disconnect()
      }
    },
  }
}
