import {
  type Cluster,
  type Kafka,
  type Logger,
  type Message,
  Partitioners,
  type Producer,
  type ProducerConfig,
} from 'kafkajs'
import { notesOf } from '../cluster/client-notes.ts'
import { kafkajsFile } from '../wire/kafkajs-file.ts'
import { openPartwiseCluster } from '../cluster/partwise-cluster.ts'

/** A record with the partition that it is written to. Strings in headers are written as UTF-8. */
export type CopiedRecord = {
  readonly partition: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: Readonly<Record<string, Buffer | string | null | (Buffer | null)[] | undefined>>
  /**
   * The record's time in epoch milliseconds. `undefined` stands for the present time. A topic keeps the given
   * time if its `message.timestamp.type` is `CreateTime`.
   */
  readonly timestampMs: number | undefined
}

/**
 * A writer of records to one topic. The records are written in the order of the calls, with the given times.
 */
export type CopyWriter = {
  /**
   * Adds a record. Resolves when there is room for a further record. Rejects when Kafka has accepted no
   * record for a minute.
   */
  write(record: CopiedRecord): Promise<void>
  /** Resolves when all in-sync replicas have all records. */
  flush(): Promise<void>
}

export type CopyProducer = {
  to(topic: string): CopyWriter
  stop(): Promise<void>
}

type CreateProducer = (parts: ProducerConfig & { logger: Logger; cluster: Cluster }) => Producer

const mostRecords = 5_000
const mostBytes = 8 * 1024 ** 2
/** The most bytes that a record takes in addition to its key, its value and its headers. */
const recordOverheadBytes = 64
const headerOverheadBytes = 16

/**
 * Starts a producer that writes the records of a partition in their order, because it has at most one request
 * per partition under way. If the answer to a request is lost, the request is sent again, and its records may
 * be written twice.
 *
 * @param batchBytes the most bytes of records in one batch. A larger record is sent in a batch of its own.
 */
export async function startCopyProducer(
  kafka: Kafka,
  { batchBytes }: { batchBytes: number },
): Promise<CopyProducer> {
  const createProducer = kafkajsFile<CreateProducer>('kafkajs/src/producer')
  const opened = openPartwiseCluster(kafka)
  const retry = notesOf(kafka)?.retry
  const producer = createProducer({
    logger: kafka.logger(),
    cluster: opened.cluster,
    createPartitioner: Partitioners.DefaultPartitioner,
    ...(retry !== undefined && { retry }),
  })
  await producer.connect()
  return {
    to(topic) {
      let messages: Message[] = []
      let bytes = 0
      const ofPartition = new Map<number, number>()
      async function flush(): Promise<void> {
        if (messages.length === 0) return
        const batch = messages
        messages = []
        bytes = 0
        ofPartition.clear()
        const answers = await producer.send({ topic, acks: -1, messages: batch })
        // kafkajs silently leaves out the records of a partition that kafkajs' metadata doesn't contain.
        const taken = new Set(answers.map(({ partition }) => partition))
        const left = batch.find(({ partition }) => partition === undefined || !taken.has(partition))
        if (left !== undefined) throw new Error(`Kafka did not take records of ${topic}/${left.partition}`)
      }
      return {
        flush,
        async write(record) {
          const size = sizeOf(record)
          if ((ofPartition.get(record.partition) ?? 0) + size > batchBytes) await flush()
          messages.push(messageOf(record))
          bytes += size
          ofPartition.set(record.partition, (ofPartition.get(record.partition) ?? 0) + size)
          if (messages.length >= mostRecords || bytes >= mostBytes) await flush()
        },
      }
    },
    async stop() {
      await producer.disconnect()
      await opened.close()
    },
  }
}

function messageOf({ partition, key, value, headers, timestampMs }: CopiedRecord): Message {
  return {
    partition,
    key,
    value,
    headers: Object.fromEntries(Object.entries(headers).map(([name, given]) => [name, valuesOf(given)])),
    ...(timestampMs !== undefined && { timestamp: String(timestampMs) }),
  }
}

/**
 * Replaces null by an empty value, because the client can't write null. For all readers of these headers,
 * null and an empty value mean the same.
 */
function valuesOf(given: CopiedRecord['headers'][string]): Buffer | string | (Buffer | string)[] {
  if (Array.isArray(given)) return given.map((one) => one ?? '')
  return given ?? ''
}

function sizeOf({ key, value, headers }: CopiedRecord): number {
  let bytes = recordOverheadBytes + (key?.length ?? 0) + (value?.length ?? 0)
  for (const [name, given] of Object.entries(headers)) {
    const values = Array.isArray(given) ? given : [given]
    for (const one of values) bytes += headerOverheadBytes + name.length + (one?.length ?? 0) * 3
  }
  return bytes
}
