import { setTimeout as passTime } from 'node:timers/promises'
import { randomBytes } from 'node:crypto'
import { Partitioners } from 'kafkajs'
import { otherProgram, testKafka } from './kafka.ts'

/** An upstream service that produces at an even rate. */
export type SteadyProducer = {
  /** The `messageId`s that Kafka has acknowledged. */
  readonly ids: readonly string[]
  /** Ends after what is under way; rejects when a send has failed. */
  stop(): Promise<void>
}

const everyMs = 100

/** Produces `track` messages, each of a user of its own, until it is stopped. */
export async function startSteadyProducer(options: {
  topic: string
  sourceId: string
  perSecond: number
  brokers?: readonly string[]
}): Promise<SteadyProducer> {
  const { topic, sourceId, perSecond, brokers = testKafka() } = options
  const run = randomBytes(4).toString('hex')
  const producer = otherProgram(brokers).producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  const ids: string[] = []
  const stopping = new AbortController()

  async function produce(): Promise<void> {
    const startedMs = performance.now()
    try {
      while (!stopping.signal.aborted) {
        const due = Math.floor(((performance.now() - startedMs) / 1000) * perSecond) - ids.length
        const batch = Array.from({ length: due }, (_, index) => `${run}-${ids.length + index}`)
        if (due > 0) {
          // A send of its own for each: where a leader moves, kafkajs loses some of those that go to several.
          const sends = batch.map((id) => producer.send({ topic, messages: [track(id, sourceId)], acks: -1 }))
          await Promise.all(sends)
          ids.push(...batch)
        }
        await passTime(everyMs)
      }
    } finally {
      await producer.disconnect()
    }
  }

  const producing = produce()
  // Told at the stop; until then it must not end the test's process.
  producing.catch(() => undefined)
  return {
    ids,
    async stop() {
      stopping.abort()
      await producing
    },
  }
}

function track(messageId: string, sourceId: string) {
  const userId = `user-${messageId}`
  return {
    key: userId,
    value: JSON.stringify({
      type: 'track',
      messageId,
      userId,
      event: 'Order Completed',
      properties: { order: messageId, total: 12.5 },
    }),
    headers: { 'source-id': sourceId },
  }
}
