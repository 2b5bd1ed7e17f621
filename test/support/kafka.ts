import { randomBytes } from 'node:crypto'
import {
  type Batch,
  CompressionTypes,
  type IHeaders,
  type Kafka,
  type KafkaMessage,
  type Message,
  Partitioners,
} from 'kafkajs'
import { inject } from 'vitest'
import { plainClient } from './plain-client.ts'
import { until } from './until.ts'

/**
 * A record as another program sees it. Header values are text. For a repeated header, only the last value is
 * there.
 */
export type SeenRecord = {
  partition: number
  offset: number
  key: string | null
  value: Buffer | null
  headers: Record<string, string>
  /** Epoch milliseconds. */
  timestamp: number
}

/** The most bytes in one batch. A topic takes batches of 1 MB or more, so every topic takes such a batch. */
const maxBatchBytes = 512 * 1024

/** Returns the addresses of the test run's Kafka. */
export function testKafka(): string[] {
  return inject('kafkaBrokers')
}

/** The prefixes that `randomPrefix` has given to this test file. */
const prefixes: string[] = []

/** Returns a topic prefix that no other test uses, such as `t-3f9a2c.`. */
export function randomPrefix(): string {
  const prefix = `t-${randomBytes(3).toString('hex')}.`
  prefixes.push(prefix)
  return prefix
}

/**
 * Deletes the topics of this test file. If they stayed, each program that lists the topics of the cluster
 * would read them all.
 */
export async function deleteOwnTopics(): Promise<void> {
  if (prefixes.length === 0) return
  const admin = otherProgram().admin()
  await admin.connect()
  try {
    const all = await admin.listTopics()
    const topics = all.filter((topic) => prefixes.some((prefix) => topic.startsWith(prefix)))
    if (topics.length > 0) await admin.deleteTopics({ topics })
  } finally {
    await admin.disconnect()
  }
}

/** Creates a plain client that acts as another program. By default, it connects to the test run's Kafka. */
export function otherProgram(brokers: readonly string[] = testKafka()): Kafka {
  return plainClient(brokers)
}

/**
 * Creates a topic, and waits until its leaders serve it. Before that, a produce request fails for some
 * partitions, and its repetition writes the records of the other partitions twice. The client's own wait
 * isn't used, because it fails if a broker doesn't know the topic yet. `settings` holds topic settings such
 * as `retention.ms`.
 */
export async function createTopic(
  topic: string,
  {
    partitions = 1,
    settings = {},
    brokers = testKafka(),
  }: { partitions?: number; settings?: Record<string, string>; brokers?: readonly string[] } = {},
): Promise<void> {
  const admin = otherProgram(brokers).admin()
  await admin.connect()
  try {
    const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }))
    await admin.createTopics({
      waitForLeaders: false,
      topics: [{ topic, numPartitions: partitions, configEntries }],
    })
    await until('its leaders serve it', async () => {
      return (await admin.fetchTopicOffsets(topic)).length === partitions
    })
  } finally {
    await admin.disconnect()
  }
}

/** Produces messages in order. Resolves when all in-sync replicas have all messages. */
export async function produce(
  topic: string,
  messages: readonly Message[],
  { compression = CompressionTypes.None }: { compression?: CompressionTypes } = {},
): Promise<void> {
  const producer = otherProgram().producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  try {
    for (const batch of batches(messages)) {
      await producer.send({ topic, messages: batch, compression, acks: -1 })
    }
  } finally {
    await producer.disconnect()
  }
}

function batches(messages: readonly Message[]): Message[][] {
  const result: Message[][] = []
  let bytes = Infinity
  for (const message of messages) {
    const size = Buffer.byteLength(message.key ?? '') + Buffer.byteLength(message.value ?? '') + 100
    if (bytes + size > maxBatchBytes) {
      result.push([])
      bytes = 0
    }
    result.at(-1)?.push(message)
    bytes += size
  }
  return result
}

/**
 * Reads a topic from its beginning. Commits nothing. Without `count`, reads up to the end that the topic has
 * at the start. With `count`, reads until there are that many records. Returns the records sorted by
 * partition and offset. Rejects after `timeoutMs`.
 */
export async function readAll(
  topic: string,
  {
    timeoutMs = 30_000,
    count,
    brokers = testKafka(),
  }: { timeoutMs?: number; count?: number; brokers?: readonly string[] } = {},
): Promise<SeenRecord[]> {
  const kafka = otherProgram(brokers)
  const unread = await unreadPartitions(kafka, topic)
  const records: SeenRecord[] = []
  const isDone = () => (count === undefined ? unread.size === 0 : records.length >= count)
  const take = (batch: Batch) => {
    records.push(...batch.messages.map((message) => seen(batch, message)))
    const end = unread.get(batch.partition) ?? Infinity
    if (Number(batch.lastOffset()) + 1 >= end) unread.delete(batch.partition)
    return isDone()
  }
  if (!isDone() && !(await consumeUntil(kafka, topic, take, timeoutMs))) {
    throw new Error(`read only ${records.length} records of ${topic} in ${timeoutMs} ms`)
  }
  return records.toSorted((a, b) => a.partition - b.partition || a.offset - b.offset)
}

/**
 * Passes batches to `take` until `take` returns true. Resolves with false if that takes longer than
 * `timeoutMs`.
 */
async function consumeUntil(
  kafka: Kafka,
  topic: string,
  take: (batch: Batch) => boolean,
  timeoutMs: number,
): Promise<boolean> {
  const consumer = kafka.consumer({
    groupId: `test-${randomBytes(8).toString('hex')}`,
    // A disconnect waits for the end of the fetch under way. So a fetch must not wait long.
    maxWaitTimeInMs: 100,
  })
  const { promise: hasAll, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(resolve, timeoutMs, false)
  try {
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachBatch: async ({ batch }) => {
        if (take(batch)) resolve(true)
      },
    })
    return await hasAll
  } finally {
    clearTimeout(timer)
    await consumer.disconnect()
  }
}

/** Returns the number of records between the first offsets and the end offsets of a topic's partitions. */
export async function countRecords(topic: string, brokers: readonly string[] = testKafka()): Promise<number> {
  const admin = otherProgram(brokers).admin()
  await admin.connect()
  try {
    const offsets = await admin.fetchTopicOffsets(topic)
    return offsets.reduce((sum, { low, high }) => sum + Number(high) - Number(low), 0)
  } finally {
    await admin.disconnect()
  }
}

/** Returns the end offset of each partition that holds records. */
async function unreadPartitions(kafka: Kafka, topic: string): Promise<Map<number, number>> {
  const admin = kafka.admin()
  await admin.connect()
  try {
    const offsets = await admin.fetchTopicOffsets(topic)
    const filled = offsets.filter(({ low, high }) => low !== high)
    return new Map(filled.map(({ partition, high }) => [partition, Number(high)]))
  } finally {
    await admin.disconnect()
  }
}

function seen({ partition }: Batch, message: KafkaMessage): SeenRecord {
  return {
    partition,
    offset: Number(message.offset),
    key: message.key === null ? null : message.key.toString(),
    value: message.value,
    headers: textHeaders(message.headers),
    timestamp: Number(message.timestamp),
  }
}

function textHeaders(headers: IHeaders = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      String(Array.isArray(value) ? value.at(-1) : value),
    ]),
  )
}
