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

/** What another program sees of a record. Header values are text; of a repeated header the last one. */
export type SeenRecord = {
  partition: number
  offset: number
  key: string | null
  value: Buffer | null
  headers: Record<string, string>
  /** Milliseconds since 1970. */
  timestamp: number
}

/** Small enough for a batch of any topic, whose limit is 1 MB or more. */
const maxBatchBytes = 512 * 1024

/** The addresses of the run's Kafka. */
export function testKafka(): string[] {
  return inject('kafkaBrokers')
}

/** All that this test file has been given. */
const prefixes: string[] = []

/** A topic prefix of one test's own, such as `t-3f9a2c.`. */
export function randomPrefix(): string {
  const prefix = `t-${randomBytes(3).toString('hex')}.`
  prefixes.push(prefix)
  return prefix
}

/** Deletes the topics of this test file: whoever lists the topics of a cluster reads all that there are. */
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

/** A plain client for acting as another program, by default of the run's Kafka. */
export function otherProgram(brokers: readonly string[] = testKafka()): Kafka {
  return plainClient(brokers)
}

/**
 * Makes a topic and waits until its leaders serve it: until then a produce fails for some of its partitions, and its
 * repeat writes to the others twice. The client's own wait fails where a broker hasn't heard of the topic yet.
 * `settings` as in `retention.ms`.
 */
export async function createTopic(
  topic: string,
  { partitions = 1, settings = {} }: { partitions?: number; settings?: Record<string, string> } = {},
): Promise<void> {
  const admin = otherProgram().admin()
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

/** Produces in order; resolves when all in-sync replicas have all of it. */
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
 * Reads a topic from its beginning, and commits nothing. Without `count`: to the end that it has now. With
 * it: until that many records are there. Sorted by partition and offset; rejects after `timeoutMs`.
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

/** Hands over batches until `take` says that it has all; false when that was not so in time. */
async function consumeUntil(
  kafka: Kafka,
  topic: string,
  take: (batch: Batch) => boolean,
  timeoutMs: number,
): Promise<boolean> {
  const consumer = kafka.consumer({
    groupId: `test-${randomBytes(8).toString('hex')}`,
    // A disconnect waits for the fetch that is under way.
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

/** The partitions that hold records, with the offset where each ends now. */
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
