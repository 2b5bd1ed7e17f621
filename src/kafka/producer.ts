import { setTimeout as delay } from 'node:timers/promises'
import type { Kafka, Producer, TopicMessages } from 'kafkajs'
import { Acknowledged, createNotingPartitioner } from './acknowledged.ts'
import { isProtocolError } from './protocol-error.ts'

/**
 * A record to write. One that comes from another record keeps its partition number; a new one is placed by
 * its key, with murmur2 as Java's clients do.
 */
export type OutboundRecord = {
  topic: string
  partition?: number
  key: Buffer | null
  value: Buffer | null
  headers: Record<string, string>
}

/** `refused`: the broker will never take this record, it is too large for the topic or for any. */
export type ProduceResult = 'acknowledged' | 'refused'

export type RecordProducer = {
  /**
   * Resolves once all in-sync replicas have the record. While the cluster doesn't take it, it waits and
   * tries again for as long as the producer runs: a record is never given up.
   */
  produce(record: OutboundRecord): Promise<ProduceResult>
  /**
   * The same, and gives the offset at which the record is. Where an acknowledgement was lost it may be at others as well,
   * before or behind.
   */
  produceAt(record: OutboundRecord): Promise<{ offset: number } | 'refused'>
  /** Records that wait for their acknowledgement. */
  readonly pending: number
  stop(): Promise<void>
}

export type ProducerOptions = {
  kafka: Kafka
  /**
   * No topic takes a larger record. Such a one isn't even sent: a request over the broker's `socket.request.max.bytes` is
   * answered by a closed connection, and would be tried again for ever.
   */
  maxRecordBytes: number
  /** The most that is sent at once, in bytes, but for a record that is larger. */
  batchBytes?: number
  /** Told of each try that Kafka has not taken all of. */
  onFailed?: () => void
  /** Told when produces begin to fail, and when they work again. */
  onStalled: (isStalled: boolean, reason: string) => void
}

const maxBatchRecords = 1_000
const defaultBatchBytes = 900_000
/**
 * Records that come within this travel together: a request costs as much CPU as a hundred records, and nothing that is
 * written here is in a hurry.
 */
const lingerMs = 20
const minBackoffMs = 250
const maxBackoffMs = 5_000
/** Topics and partitions change while this runs: so often the client looks, in milliseconds. */
const metadataMaxAgeMs = 10_000
/** An error names so many partitions. */
const namedPlaces = 5
/** The client goes on for half a minute by itself before it gives up: long before that, nothing may be begun. */
const stallAfterMs = 3_000

type Waiting = {
  record: OutboundRecord
  bytes: number
  /** The offset is -1 where the record is refused. */
  resolve: (result: ProduceResult, offset: number) => void
}

/**
 * Batches what is produced while the batch before is under way. One send at a time, not idempotent: kafkajs
 * reuses a sequence number when an acknowledgement is lost under concurrent sends, and so acknowledges what
 * was never written (kafkajs#1005). A lost acknowledgement here writes a record twice, which is allowed.
 */
export async function startProducer({
  kafka,
  maxRecordBytes,
  batchBytes = defaultBatchBytes,
  onFailed,
  onStalled,
}: ProducerOptions): Promise<RecordProducer> {
  const producer = kafka.producer({
    idempotent: false,
    createPartitioner: createNotingPartitioner,
    allowAutoTopicCreation: false,
    metadataMaxAge: metadataMaxAgeMs,
    retry: { initialRetryTime: 200, maxRetryTime: 2_000, retries: 3 },
  })
  await producer.connect()

  const queue: Waiting[] = []
  const stopping = new AbortController()
  let inFlight = 0
  let isSending = false
  let isStalled = false

  async function pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: stopping.signal }).catch(() => undefined)
  }

  async function sendQueued(): Promise<void> {
    isSending = true
    while (queue.length > 0 && !stopping.signal.aborted) {
      if (queue.length < maxBatchRecords) await pause(lingerMs)
      const batch = takeBatch(queue, batchBytes)
      inFlight = batch.length
      await sendUntilTaken(batch)
      inFlight = 0
    }
    isSending = false
  }

  async function sendUntilTaken(batch: Waiting[]): Promise<void> {
    let left: readonly Waiting[] = batch
    for (
      let backoffMs = minBackoffMs;
      !stopping.signal.aborted;
      backoffMs = Math.min(backoffMs * 2, maxBackoffMs)
    ) {
      try {
        const unsent = await sendWatched(left)
        const hasProgress = unsent.length < left.length
        left = unsent
        if (left.length === 0) {
          setStalled(false, '')
          return
        }
        onFailed?.()
        if (!hasProgress) setStalled(true, unacknowledged(left))
      } catch (error) {
        if (isProtocolError(error, tooLarge)) {
          setStalled(false, '')
          await sendSingly(left)
          return
        }
        onFailed?.()
        setStalled(true, error instanceof Error ? error.message : String(error))
      }
      // kafkajs passes over a partition that it doesn't know without having asked a broker: nothing else would wait.
      await pause(backoffMs)
    }
  }

  /** Gives those that it has not sent after all. */
  async function sendWatched(batch: readonly Waiting[]): Promise<readonly Waiting[]> {
    const slow = setTimeout(setStalled, stallAfterMs, true, `no acknowledgement within ${stallAfterMs} ms`)
    try {
      return await send(producer, batch)
    } finally {
      clearTimeout(slow)
    }
  }

  /** One record too large for its topic makes the broker refuse the whole batch: find it. */
  async function sendSingly(batch: readonly Waiting[]): Promise<void> {
    if (batch.length === 1) {
      batch[0]?.resolve('refused', -1)
      return
    }
    for (const waiting of batch) await sendUntilTaken([waiting])
  }

  function setStalled(next: boolean, reason: string): void {
    if (next === isStalled) return
    isStalled = next
    onStalled(next, reason)
  }

  function enqueue(record: OutboundRecord, resolve: Waiting['resolve']): void {
    const bytes = sizeOf(record)
    if (bytes > maxRecordBytes) {
      resolve('refused', -1)
      return
    }
    queue.push({ record, bytes, resolve })
    if (!isSending) void sendQueued()
  }

  return {
    produce(record) {
      return new Promise((resolve) => enqueue(record, resolve))
    },
    produceAt(record) {
      return new Promise((resolve) => {
        enqueue(record, (result, offset) => resolve(result === 'refused' ? result : { offset }))
      })
    },
    get pending() {
      return queue.length + inFlight
    },
    async stop() {
      stopping.abort()
      await producer.disconnect()
    },
  }
}

function takeBatch(queue: Waiting[], batchBytes: number): Waiting[] {
  let bytes = 0
  let count = 0
  while (count < queue.length && count < maxBatchRecords) {
    bytes += queue[count]?.bytes ?? 0
    if (count > 0 && bytes > batchBytes) break
    count++
  }
  return queue.splice(0, count)
}

/** What Kafka adds to a record and to a batch of its own, lengths included; no less than what it is. */
const recordOverheadBytes = 128
const headerOverheadBytes = 10

function sizeOf({ key, value, headers }: OutboundRecord): number {
  let bytes = recordOverheadBytes + (key?.length ?? 0) + (value?.length ?? 0)
  for (const name of Object.keys(headers)) {
    bytes += headerOverheadBytes + name.length + Buffer.byteLength(headers[name] ?? '')
  }
  return bytes
}

/** Names the partitions; `left` has one record or more. */
function unacknowledged(left: readonly Waiting[]): string {
  const places = new Set(left.map(({ record: { topic, partition } }) => `${topic}/${partition ?? 'any'}`))
  const some = [...places].slice(0, namedPlaces).join(', ')
  const more = places.size > namedPlaces ? ` and ${places.size - namedPlaces} more` : ''
  return `no broker takes records of ${some}${more}: the partition does not exist, or has no leader (\`sluice topics check\` says what is missing)`
}

/** Tells those that are written; gives the others, whose partitions nobody has acknowledged. */
async function send(producer: Producer, batch: readonly Waiting[]): Promise<readonly Waiting[]> {
  const byTopic = new Map<string, TopicMessages>()
  const messages = batch.map(({ record: { topic, ...message } }) => {
    const entry = byTopic.get(topic)
    if (entry === undefined) byTopic.set(topic, { topic, messages: [message] })
    else entry.messages.push(message)
    return message
  })
  const topicMessages = [...byTopic.values()]
  const acknowledged = new Acknowledged(
    await producer.sendBatch({ acks: -1, timeout: 10_000, topicMessages }),
  )
  return batch.filter(({ record, resolve }, index) => {
    // Written into the message when it was placed.
    const offset = acknowledged.next(record.topic, messages[index]?.partition)
    if (offset !== undefined) resolve('acknowledged', offset)
    return offset === undefined
  })
}

const tooLarge: ReadonlySet<string> = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE'])
