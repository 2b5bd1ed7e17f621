import { setTimeout as delay } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import { errorCodes } from './error-codes.ts'
import { type ProducedRecords, ProduceLink, type ProduceOutcome } from './produce-link.ts'

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
   * The same, and gives the offset at which the record is. Where an acknowledgement was lost it may be at
   * others as well, before or behind.
   */
  produceAt(record: OutboundRecord): Promise<{ offset: number } | 'refused'>
  /** Records that wait for their acknowledgement. */
  readonly pending: number
  stop(): Promise<void>
}

export type ProducerOptions = {
  kafka: Kafka
  /**
   * No topic takes a larger record. Such a one isn't even sent: a request over the broker's
   * `socket.request.max.bytes` is answered by a closed connection, and would be tried again for ever.
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
 * Records that come within this travel together: a request costs as much CPU as a hundred records, and
 * nothing that is written here is in a hurry.
 */
const lingerMs = 20
const minBackoffMs = 250
const maxBackoffMs = 5_000
/** An error names so many partitions. */
const namedReasons = 5
/** What isn't taken for so long says that Kafka takes nothing: until it does, nothing may be begun. */
const stallAfterMs = 3_000
/** Nobody waits for these but their partitions: a replica that is slow is waited for. */
const timeouts = { replicasTimeoutMs: 10_000, sendTimeoutMs: 20_000 }

type Waiting = {
  record: OutboundRecord
  /** Where it is written; `undefined` until it is placed. */
  partition: number | undefined
  bytes: number
  /** The offset is -1 where the record is refused. */
  resolve: (result: ProduceResult, offset: number) => void
}

/** Records of one partition that are sent together. */
type Parcel = ProducedRecords & { readonly waiting: readonly Waiting[] }

/** What is left of a batch, and why. */
type Left = { readonly unsent: Waiting[]; readonly tooLarge: Waiting[]; readonly reasons: Set<string> }

/**
 * Batches what is produced while the batch before is under way. One send at a time, not idempotent: so the
 * records of a partition are written in the order of their coming. A lost acknowledgement writes a record
 * twice, which is allowed.
 */
export async function startProducer({
  kafka,
  maxRecordBytes,
  batchBytes = defaultBatchBytes,
  onFailed,
  onStalled,
}: ProducerOptions): Promise<RecordProducer> {
  const link = new ProduceLink(kafka, timeouts)
  await link.connect()

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

  async function sendUntilTaken(batch: readonly Waiting[]): Promise<void> {
    let left = batch
    let failingSinceMs = Infinity
    for (
      let backoffMs = minBackoffMs;
      !stopping.signal.aborted;
      backoffMs = Math.min(backoffMs * 2, maxBackoffMs)
    ) {
      const { unsent, tooLarge, reasons } = await sendWatched(left)
      if (tooLarge.length > 0) await sendSingly(tooLarge)
      if (unsent.length === 0) {
        setStalled(false, '')
        return
      }
      onFailed?.()
      const nowMs = performance.now()
      failingSinceMs = unsent.length < left.length ? nowMs : Math.min(failingSinceMs, nowMs)
      // A leader that moves is followed within this time.
      if (nowMs - failingSinceMs >= stallAfterMs) setStalled(true, describe(reasons))
      left = unsent
      await pause(backoffMs)
    }
  }

  async function sendWatched(batch: readonly Waiting[]): Promise<Left> {
    const slow = setTimeout(setStalled, stallAfterMs, true, `no acknowledgement within ${stallAfterMs} ms`)
    try {
      return await send(link, batch)
    } finally {
      clearTimeout(slow)
    }
  }

  /** One record too large for its topic makes the broker refuse all that are sent with it: find it. */
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
    queue.push({ record, partition: record.partition, bytes, resolve })
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
      await link.close()
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

/** What keeps records from being written, of a few partitions. */
function describe(reasons: ReadonlySet<string>): string {
  const some = [...reasons].slice(0, namedReasons).join('; ')
  return reasons.size > namedReasons ? `${some}; and ${reasons.size - namedReasons} more` : some
}

/** Tells those that are written; gives the others. Never rejects. */
async function send(link: ProduceLink, batch: readonly Waiting[]): Promise<Left> {
  const left: Left = { unsent: [], tooLarge: [], reasons: new Set() }
  const open = new Set<Parcel>()
  try {
    for (const parcel of await parcelsOf(link, batch, left)) open.add(parcel)
    await link.send([...open], (parcel, outcome) => {
      if (open.delete(parcel)) settle(parcel, outcome, left)
    })
  } catch (error) {
    left.reasons.add(error instanceof Error ? error.message : String(error))
  }
  for (const { waiting } of open) left.unsent.push(...waiting)
  // What is answered from here on was given up.
  open.clear()
  return left
}

/** Those that have no place yet are left. */
async function parcelsOf(
  link: ProduceLink,
  batch: readonly Waiting[],
  left: Left,
): Promise<readonly Parcel[]> {
  const byPlace = new Map<string, Waiting[]>()
  for (const waiting of batch) {
    waiting.partition ??= await placeOf(link, waiting.record, left)
    if (waiting.partition === undefined) {
      left.unsent.push(waiting)
      continue
    }
    const place = `${waiting.record.topic}/${waiting.partition}`
    const parcel = byPlace.get(place)
    if (parcel === undefined) byPlace.set(place, [waiting])
    else parcel.push(waiting)
  }
  return [...byPlace.values()].map(parcelOf)
}

async function placeOf(
  link: ProduceLink,
  { topic, key }: OutboundRecord,
  { reasons }: Left,
): Promise<number | undefined> {
  try {
    const partition = await link.placeOf(topic, key)
    if (partition === undefined) reasons.add(`${topic} does not exist, or may not be written`)
    return partition
  } catch (error) {
    reasons.add(error instanceof Error ? error.message : String(error))
    return undefined
  }
}

function parcelOf(waiting: readonly Waiting[]): Parcel {
  const [first] = waiting
  return {
    topic: first?.record.topic ?? '',
    partition: first?.partition ?? -1,
    records: waiting.map(({ record }) => record),
    waiting,
  }
}

function settle({ waiting }: Parcel, outcome: ProduceOutcome, { unsent, tooLarge, reasons }: Left): void {
  if (outcome.isWritten) {
    for (const [index, { resolve }] of waiting.entries()) resolve('acknowledged', outcome.offset + index)
    return
  }
  if (isTooLarge(outcome.errorCode)) tooLarge.push(...waiting)
  else {
    unsent.push(...waiting)
    reasons.add(outcome.reason)
  }
}

function isTooLarge(errorCode: number | undefined): boolean {
  return errorCode === errorCodes.MESSAGE_TOO_LARGE || errorCode === errorCodes.RECORD_LIST_TOO_LARGE
}
