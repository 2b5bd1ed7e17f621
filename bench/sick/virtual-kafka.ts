import type { HeldRecord, RecordContent } from '../../src/message/held-record.ts'
import { Partition } from '../../src/kafka/partitions/partition.ts'
import { RecordQueue, type WrittenRecord } from './record-queue.ts'
import type { OutboundRecord } from '../../src/pipeline/pipeline-ports.ts'

export type VirtualKafkaOptions = {
  partitions: number
  /** How long the records of a topic wait before they are due, in milliseconds. */
  waits: ReadonlyMap<string, number>
  onRecord: (record: HeldRecord, content: RecordContent) => void
  /** Returns the time until the fetching process has done its present work, in milliseconds. */
  behindMs: () => number
}

type Batch = { sinceMs: number; records: OutboundRecord[]; written: Promise<void> }

/** The time from the producer's call until the record is in the log. */
const appendMs = 2
const fetchMs = 2
/** This value and the next two are those of the real consumer. */
const fetchBytes = 64 * 1024
const headPeriodMs = 500
const lateAfterMs = 10_000

/**
 * Simulates what a pipeline notices of Kafka and the group's consumer:
 * - logs in order
 * - retry topics of which the consumer waits only for the first record
 * - fetches of 64 KiB
 * - pauses when the buffer is full or a lane can't keep up
 * - the window of the records that may be settled out of order
 */
export class VirtualKafka {
  readonly #options: VirtualKafkaOptions
  readonly #logs = new Map<string, readonly Log[]>()
  #batch: Batch = { sinceMs: 0, records: [], written: Promise.resolve() }
  #isFull = false
  #isCongested = false
  /** The number of records that are in a log and not handed out. */
  waiting = 0

  constructor(options: VirtualKafkaOptions) {
    this.#options = options
    for (const [topic, waitMs] of options.waits) {
      const logs = Array.from({ length: options.partitions }, (_, id) => new Log(topic, id, waitMs))
      this.#logs.set(topic, logs)
    }
  }

  /** Appends a record to the log at once. */
  append(topic: string, partition: number, record: WrittenRecord): void {
    const log = this.#logs.get(topic)?.[partition]
    if (log === undefined) throw new Error(`there is no partition ${topic}/${partition}`)
    log.records.push(record, Date.now())
    this.waiting++
    this.#fetchSoon(log)
  }

  /**
   * Produces a record. Resolves when the record is in the log. Records that are produced in the same
   * millisecond are appended together.
   */
  async produce(record: OutboundRecord): Promise<'acknowledged'> {
    const nowMs = Date.now()
    if (this.#batch.sinceMs !== nowMs) this.#batch = this.#beginBatch(nowMs)
    this.#batch.records.push(record)
    await this.#batch.written
    return 'acknowledged'
  }

  #beginBatch(sinceMs: number): Batch {
    const records: OutboundRecord[] = []
    const { promise: written, resolve } = Promise.withResolvers<void>()
    setTimeout(() => {
      for (const record of records) this.append(record.topic, record.partition, record)
      resolve()
    }, appendMs)
    return { sinceMs, records, written }
  }

  setFull(isFull: boolean): void {
    this.#isFull = isFull
    this.#fetchAll()
  }

  setCongested(isCongested: boolean): void {
    this.#isCongested = isCongested
    this.#fetchAll()
  }

  #fetchAll(): void {
    for (const logs of this.#logs.values()) for (const log of logs) this.#fetchSoon(log)
  }

  #mayFetch({ partition, isBehind, isWaiting }: Log): boolean {
    return !this.#isFull && !(this.#isCongested && isBehind) && !isWaiting && !partition.wantsPause
  }

  #fetchSoon(log: Log, afterMs = fetchMs, isLate = false): void {
    if (log.isFetching || log.records.length === 0 || !this.#mayFetch(log)) return
    log.isFetching = true
    setTimeout(() => {
      log.isFetching = false
      this.#fetch(log, isLate)
    }, afterMs)
  }

  #fetch(log: Log, isLate = false): void {
    // A busy process fetches late: when it has done the work that it has now. Work that comes meanwhile doesn't
    // delay the fetch again, because each turn of the event loop reads from all sockets.
    const behindMs = isLate ? 0 : this.#options.behindMs()
    if (behindMs > 1) {
      this.#fetchSoon(log, Math.ceil(behindMs), true)
      return
    }
    if (!this.#mayFetch(log)) return
    let bytes = 0
    while (bytes < fetchBytes) {
      const { headMs } = log.records
      if (headMs === undefined) return
      const dueMs = headMs + log.partition.waitMs
      const lateByMs = Date.now() - dueMs
      if (lateByMs < 0) {
        this.#waitForHead(log, dueMs)
        return
      }
      log.isBehind = lateByMs > lateAfterMs
      bytes += this.#handOut(log, headMs)
    }
    this.#fetchSoon(log)
  }

  #handOut(log: Log, appendedMs: number): number {
    const record = new Lent(log, log.handedOut++, appendedMs, () => this.#fetchSoon(log))
    this.waiting--
    log.partition.take(record.offset)
    const content = log.records.shift()
    this.#options.onRecord(record, content)
    return recordBytes + (content.key?.length ?? 0) + (content.value?.length ?? 0)
  }

  /**
   * Waits for the first record of a log. If it is due soon, the next look is at the partition's turn, as in
   * the consumer.
   */
  #waitForHead(log: Log, dueMs: number): void {
    const { partition } = log
    const nowMs = Date.now()
    const turnMs = ((partition.id * 0.618_033_988_749_895) % 1) * headPeriodMs
    const soonestMs = Math.max(dueMs, nowMs + headPeriodMs / 2)
    const lookAtMs =
      dueMs - nowMs >= headPeriodMs
        ? dueMs
        : Math.ceil((soonestMs - turnMs) / headPeriodMs) * headPeriodMs + turnMs
    log.isWaiting = true
    setTimeout(
      () => {
        log.isWaiting = false
        this.#fetchSoon(log)
      },
      Math.ceil(lookAtMs - nowMs),
    )
  }
}

/** The bytes of a record without key and value. Most of them are headers. */
const recordBytes = 300

/** The log of a partition, with the state of the consumer and the records that are not handed out. */
class Log {
  readonly partition: Partition
  readonly records = new RecordQueue()
  isFetching = false
  /** True if the last record was handed out late. */
  isBehind = false
  /** True while the first record isn't due. */
  isWaiting = false
  handedOut = 0

  constructor(topic: string, id: number, waitMs: number) {
    this.partition = new Partition(topic, id, waitMs)
    this.partition.begun()
  }
}

class Lent implements HeldRecord {
  readonly #partition: Partition
  readonly offset: number
  readonly timestampMs: number
  readonly isLate: boolean
  readonly isAbandoned = false
  readonly mayHaveBegun = false
  readonly #onSettled: () => void

  constructor({ partition, isBehind }: Log, offset: number, timestampMs: number, onSettled: () => void) {
    this.#partition = partition
    this.offset = offset
    this.timestampMs = timestampMs
    this.isLate = isBehind
    this.#onSettled = onSettled
  }

  get topic(): string {
    return this.#partition.topic
  }

  get partition(): number {
    return this.#partition.id
  }

  settle(): void {
    this.#partition.settle(this.offset)
    this.#onSettled()
  }

  giveBack(): void {
    throw new Error(`${this.topic}/${this.partition} gave a record back that nobody else takes`)
  }
}
