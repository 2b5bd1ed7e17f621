import { fetchWaitMs } from './broker-loop.ts'
import type { FetchedBatch, FetchHandle, FetchListener } from './fetch-handle.ts'
import type { Fetcher } from './fetcher.ts'
import type { Partition } from './partition.ts'
import type { Truncation } from './positions.ts'
import type { FetchedRecord } from './record-batch.ts'
import type { KnownLog } from './stored-commit.ts'

/** What stops the fetching of all partitions of a member, or of those that are behind. */
export class Gate {
  /** The buffer is full. */
  isFull = false
  /** The group wasn't heard of for a session. */
  isSilent = false
  /** Nothing more is begun. */
  isQuiet = false
  isCongested = false

  get isShut(): boolean {
    return this.isFull || this.isSilent || this.isQuiet
  }
}

export type FeedOptions = {
  readonly partition: Partition
  readonly fetcher: Fetcher
  readonly gate: Gate
  /** Takes one record of the partition, which was found new. `isLate`: we are behind with it. */
  readonly onRecord: (partition: Partition, record: FetchedRecord, isLate: boolean) => void
  /** `count` offsets were deleted before they were read; some of them may have had no record. */
  readonly onLost: (partition: Partition, count: number) => void
  /** Nothing more is read of it by this feed, which is to be closed. */
  readonly onTruncated: (partition: Partition, truncation: Truncation) => void
}

/** From where on a partition is read, and what is known of its log there. */
export type FeedStart = {
  readonly offset: number
  /** Of the last record before; -1 where it isn't known. */
  readonly leaderEpoch: number
  readonly topicId: string | undefined
}

/**
 * How often the head of a busy waiting topic is looked at: each time costs a fetch, most of which isn't due
 * yet.
 */
const headPeriodMs = 500
/** A record that is taken this long after its append, or after it was due, shows that we are behind. */
const lateAfterMs = 10_000

/**
 * When to look at a head again, in epoch milliseconds: when it is due, or where that is soon, in the
 * partition's turn. All partitions of a busy tier are due all the time; looked at in one fetch, they would
 * hold up everything else for its length.
 */
function lookAtMs({ turn }: Partition, dueMs: number): number {
  const nowMs = Date.now()
  if (dueMs - nowMs >= headPeriodMs) return dueMs
  const turnMs = turn * headPeriodMs
  const soonestMs = Math.max(dueMs, nowMs + headPeriodMs / 2)
  return Math.ceil((soonestMs - turnMs) / headPeriodMs) * headPeriodMs + turnMs
}

/**
 * How long a fetch waits at a broker that had nothing the last time, where no partition is about to be
 * resumed.
 */
const idleFetchWaitMs = 250

/**
 * A partition that is resumed waits for the end of the fetch that is under way: how long that may be, in
 * milliseconds.
 */
export function longestWaitMs(feeds: Iterable<Feed>): number {
  const nowMs = Date.now()
  let soonestMs = nowMs + idleFetchWaitMs
  for (const { isPaused, headDueMs, lookAtMs: nextLookMs } of feeds) {
    if (!isPaused) continue
    if (headDueMs === 0) return fetchWaitMs
    soonestMs = Math.min(soonestMs, nextLookMs)
  }
  return Math.max(fetchWaitMs, Math.ceil(soonestMs - nowMs))
}

/**
 * What a fetch brings of a partition that is read as records come. Twice what it brings of a tier, whose
 * records behind the head are fetched again each time that the head is looked at: large batches of producers
 * come with those of other partitions then, and a delivery costs a few per cent less CPU.
 */
const liveFetchBytes = 128 * 1024

/**
 * What is fetched of one partition that was begun, until it is lost. It owns the partition's pauses and
 * seeks, and its waits for a head.
 */
export class Feed implements FetchListener, KnownLog {
  readonly #options: FeedOptions
  #start: FeedStart
  #handle: FetchHandle | undefined
  #dueTimer: NodeJS.Timeout | undefined
  #isPaused = false
  /** The last record taken was long there to be taken: this partition has a backlog. */
  #isBehind = false
  #headDueMs = 0
  #lookAtMs = 0

  /** Reads nothing before `open`. */
  constructor(options: FeedOptions, start: FeedStart) {
    this.#options = options
    this.#start = start
  }

  /** Before `open`: reads from there on, which is not before where it was made for. */
  startAt(offset: number): void {
    if (offset !== this.#start.offset) this.#start = { ...this.#start, offset, leaderEpoch: -1 }
  }

  get topicId(): string | undefined {
    return this.#start.topicId
  }

  leaderEpochBefore(offset: number): number {
    const read = this.#handle?.leaderEpochBefore(offset) ?? -1
    return read < 0 && offset <= this.#start.offset ? this.#start.leaderEpoch : read
  }

  /** Nothing is fetched of it. */
  get isPaused(): boolean {
    return this.#isPaused
  }

  /** When the head of a retry topic is due, in epoch milliseconds; 0 while nothing waits. */
  get headDueMs(): number {
    return this.#headDueMs
  }

  /** When that head is looked at next, in epoch milliseconds. */
  get lookAtMs(): number {
    return this.#lookAtMs
  }

  open(): void {
    const { partition, fetcher } = this.#options
    const { offset, leaderEpoch, topicId } = this.#start
    this.#isPaused = this.#wantsPause
    this.#handle = fetcher.open({
      topic: partition.topic,
      partition: partition.id,
      offset,
      leaderEpoch,
      topicId,
      isPaused: this.#isPaused,
      ...(partition.waitMs === 0 && { maxBytes: liveFetchBytes }),
      on: this,
    })
  }

  close(): void {
    clearTimeout(this.#dueTimer)
    this.#handle?.close()
  }

  /** Where the log ends, as far as its leader has told; `atMs`: when it was asked, 0 before that. */
  get end(): FetchHandle['end'] {
    return this.#handle?.end ?? { offset: 0, atMs: 0 }
  }

  get trouble(): string | undefined {
    return this.#handle?.trouble
  }

  /** Stops or starts the fetching by what is wanted now. */
  applyPause(): void {
    const isPaused = this.#wantsPause
    if (isPaused === this.#isPaused || this.#handle === undefined) return
    this.#isPaused = isPaused
    if (isPaused) this.#handle.pause()
    else this.#handle.resume()
  }

  get #wantsPause(): boolean {
    const { partition, gate } = this.#options
    const isHeld = gate.isShut || (gate.isCongested && this.#isBehind)
    return isHeld || this.#headDueMs > 0 || partition.wantsPause
  }

  batch({ from, records, nextOffset }: FetchedBatch): void {
    const { partition, gate } = this.#options
    const { top } = partition.watermark
    // Not taken, so it must be fetched again; and what was never fetched must not be passed over.
    if (gate.isShut || from > top) {
      this.#handle?.seek(Math.min(from, top))
      this.applyPause()
      return
    }
    partition.reachesTo(this.end.offset)
    for (const record of records) {
      if (!this.#take(record)) return
    }
    partition.passOver(nextOffset)
    this.applyPause()
  }

  lost(from: number, to: number): void {
    const { partition, onLost } = this.#options
    partition.passOver(to)
    onLost(partition, to - from)
  }

  truncated(truncation: Truncation): void {
    this.#options.onTruncated(this.#options.partition, truncation)
  }

  /** Gives false when the record isn't due: it and all behind it will be fetched again. */
  #take(record: FetchedRecord): boolean {
    const { partition, onRecord } = this.#options
    const { offset, timestampMs } = record
    const nowMs = Date.now()
    partition.see(offset, timestampMs)
    const dueMs = partition.dueMsOf(offset, timestampMs, nowMs)
    const lateByMs = nowMs - dueMs
    if (partition.waitMs > 0 && lateByMs < 0) {
      this.#waitForHead(offset, dueMs)
      return false
    }
    this.#isBehind = lateByMs > lateAfterMs
    if (partition.take(offset)) onRecord(partition, record, this.#isBehind)
    return true
  }

  /**
   * A retry topic is a queue in due order, since all its records wait equally long. Only the head is looked
   * at: the partition is paused and nothing of the batch is kept, so waiting costs neither memory nor a
   * stall.
   */
  #waitForHead(offset: number, dueMs: number): void {
    const { partition } = this.#options
    this.#headDueMs = dueMs
    this.#lookAtMs = lookAtMs(partition, dueMs)
    this.#handle?.seek(offset)
    this.applyPause()
    this.#dueTimer = setTimeout(() => {
      if (partition.isLost) return
      this.#headDueMs = 0
      this.applyPause()
    }, this.#lookAtMs - Date.now())
  }
}
