import { type Message, Partitioners } from 'kafkajs'
import { encodeRetryState } from '../../src/retry/retry-state.ts'
import { otherProgram } from './kafka.ts'
import { until } from './until.ts'

/**
 * Makes a topic keep the times that producers give to its records. So a test can write records of hours ago.
 * The topic then keeps its records without a time limit.
 */
export async function nameOwnTimes(topic: string): Promise<void> {
  const admin = otherProgram().admin()
  await admin.connect()
  try {
    const configEntries = [
      { name: 'message.timestamp.type', value: 'CreateTime' },
      { name: 'retention.ms', value: '-1' },
    ]
    await admin.alterConfigs({ validateOnly: false, resources: [{ type: 2, name: topic, configEntries }] })
    await until('the brokers know it', async () => {
      const { resources } = await admin.describeConfigs({
        includeSynonyms: false,
        resources: [{ type: 2, name: topic, configNames: ['message.timestamp.type'] }],
      })
      return resources[0]?.configEntries[0]?.configValue === 'CreateTime'
    })
  } finally {
    await admin.disconnect()
  }
}

export type Letter = {
  readonly destinationId: string
  readonly messageId: string
  readonly atMs: number
  readonly reason?: string
  readonly userId?: string
  readonly headers?: Record<string, string>
}

/** Returns a dead letter as a worker writes it after 25 attempts. */
export function letterOf(
  { destinationId, messageId, atMs, reason = 'expired', userId = `user-${messageId}`, headers = {} }: Letter,
  prefix: string,
): Message {
  return {
    key: userId,
    timestamp: String(atMs),
    value: JSON.stringify({
      version: 1,
      type: 'track',
      messageId,
      userId,
      event: 'Order Completed',
      timestamp: new Date(atMs).toISOString(),
      context: {},
      properties: {},
    }),
    headers: {
      ...encodeRetryState({
        sourceId: 'shop',
        destinationId,
        messageId,
        kind: 'track',
        nextRung: 9,
        waits: 3,
        attempts: 25,
        firstSeenMs: atMs - 4 * 3_600_000,
        expiresAtMs: atMs,
        failedHooks: ['main'],
        notBeforeMs: new Map([['main', atMs + 60_000]]),
        lastOutcome: 'status 500',
        origin: { topic: `${prefix}events`, partition: 0, offset: 0 },
      }),
      reason,
      detail: 'no URL took it',
      ...headers,
    },
  }
}

const batchSize = 5_000

/** Writes all `letters` to a topic. The user of each letter decides its partition. */
export async function writeLetters(topic: string, letters: Iterable<Message>): Promise<void> {
  const producer = otherProgram().producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  let messages: Message[] = []
  const send = async () => {
    await producer.send({ topic, messages, acks: 1 })
    messages = []
  }
  try {
    for (const letter of letters) {
      messages.push(letter)
      if (messages.length === batchSize) await send()
    }
    if (messages.length > 0) await send()
  } finally {
    await producer.disconnect()
  }
}
