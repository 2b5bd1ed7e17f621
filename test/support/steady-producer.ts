import { setTimeout as passTime } from 'node:timers/promises'
import { randomBytes } from 'node:crypto'
import { Partitioners } from 'kafkajs'
import { otherProgram, testKafka } from './kafka.ts'

/** An upstream service that produces at an even rate. */
export type SteadyProducer = {
  /** The `messageId`s that Kafka has acknowledged. */
  readonly ids: readonly string[]
  /** Stops after the sends that are under way. Rejects if a send has failed. */
  stop(): Promise<void>
}

const everyMs = 100

/** Starts a producer of `track` messages. Each message has its own user. It produces until it is stopped. */
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
          // Each message is sent by a separate call. When a leader moves, kafkajs loses some messages of a
          // call that sends to several partitions.
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
  // `stop` reports this error. Until then, the error must not end the test's process.
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
