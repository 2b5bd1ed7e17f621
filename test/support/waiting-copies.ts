import { CompressionTypes, Partitioners } from 'kafkajs'
import { otherProgram, readAll, type SeenRecord } from './kafka.ts'
import { until } from './until.ts'

/** The number of records that are sent together. */
const batch = 2_000

/** Who is said to have queued the copies of a partition. Each partition has writers of its own. */
const writerOf = (partition: number): string => `earlier-${partition}`

export type Copies = {
  readonly count: number
  /** The number of partitions of the topic. Each gets as many copies. */
  readonly partitions: number
  /** Returns when a copy is said to have been appended, in epoch milliseconds. Default: now. */
  readonly appendedMs?: (index: number) => number
}

/** Resolves with the first record of a topic `waiting`, as soon as there is one. */
export function firstWaiting(topic: string): Promise<SeenRecord> {
  return until('a record waits', async () => (await readAll(topic))[0])
}

/** Returns the message id of a copy. */
export function copyId(index: number): string {
  return `copy-${index}`
}

/**
 * Appends copies of a record to a topic `waiting`, with users, message ids and numbers of their own, as a former worker has
 * appended them.
 */
export async function appendCopies(
  topic: string,
  { value, headers }: SeenRecord,
  { count, partitions, appendedMs }: Copies,
): Promise<void> {
  const producer = otherProgram().producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  try {
    for (let from = 0; from < count; from += batch) {
      const messages = Array.from({ length: Math.min(batch, count - from) }, (_, place) => {
        const index = from + place
        const partition = index % partitions
        return {
          key: `user-${index}`,
          value: value && withId(value, copyId(index)),
          partition,
          ...(appendedMs !== undefined && { timestamp: String(Math.floor(appendedMs(index))) }),
          headers: {
            ...headers,
            'message-id': copyId(index),
            queued: `${writerOf(partition)}/${index + 1}/fresh`,
          },
        }
      })
      await producer.send({ topic, messages, acks: -1, compression: CompressionTypes.GZIP })
    }
  } finally {
    await producer.disconnect()
  }
}

function withId(value: Buffer, messageId: string): Buffer {
  return Buffer.from(JSON.stringify({ ...JSON.parse(value.toString()), messageId }))
}
