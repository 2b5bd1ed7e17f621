import { fetchWaitMs } from '../fetch/broker-loop.ts'
import type { FetchedBatch, FetchHandle, FetchListener } from '../fetch/fetch-handle.ts'
import type { Fetcher } from '../fetch/fetcher.ts'
import type { Partition } from './partition.ts'
import type { Truncation } from '../fetch/positions.ts'
import type { FetchedRecord } from '../wire/record-batch.ts'
import { RetryWait } from './retry-wait.ts'
import type { KnownLog } from '../wire/stored-commit.ts'

/**
 * The switches that stop fetching. They stop it for all partitions of a member, or only for the partitions
 * with a backlog.
 */
export class Gate {
  isFull = false
  /** True while nothing was heard from the group for a session timeout. */
  isSilent = false
  /** True once the member starts no further record. */
  isStopping = false
  isCongested = false

  get isShut(): boolean {
    return this.isFull || this.isSilent || this.isStopping
  }
}

export type FeedOptions = {
  readonly partition: Partition
  readonly fetcher: Fetcher
  readonly gate: Gate
  /** Takes one record that the partition hasn't taken before. `isLate`: true if the worker is catching up. */
  readonly onRecord: (partition: Partition, record: FetchedRecord, isLate: boolean) => void
  /**
   * Called when `count` offsets were deleted before they were read. Some of these offsets may never have had
   * a record.
   */
  readonly onLost: (partition: Partition, count: number) => void
  /**
   * Called when the log isn't the log that was read before. This feed reads nothing more, and should be
   * closed.
   */
  readonly onTruncated: (partition: Partition, truncation: Truncation) => void
}

/** The offset from which a partition is read, and what is known of the partition's log at this offset. */
export type FeedStart = {
  readonly offset: number
  /** The leader epoch of the last record before `offset`, or -1 if it isn't known. */
  readonly leaderEpoch: number
  readonly topicId: string | undefined
}

/**
 * A record counts as late if its delay is longer than this, in milliseconds. The delay begins when the record
 * is appended or, on a retry topic, when the record is due. It ends when the worker takes the record. A
 * partition whose last record was late has a backlog.
 */
const lateAfterMs = 10_000

/**
 * The longest wait of a fetch at a broker whose last answer had no records, in milliseconds. The wait is
 * shorter if a partition will be resumed sooner.
 */
const idleFetchWaitMs = 250

/**
 * Returns the longest time that the next fetch may wait at a broker whose last answer had no records, in
 * milliseconds. A partition that is resumed during a fetch has to wait for the end of the fetch.
 */
export function longestWaitMs(feeds: Iterable<Feed>): number {
  const nowMs = Date.now()
  let soonestMs = nowMs + idleFetchWaitMs
  for (const { isPaused, headDueMs, lookAtMs } of feeds) {
    if (!isPaused) continue
    if (headDueMs === 0) return fetchWaitMs
    soonestMs = Math.min(soonestMs, lookAtMs)
  }
  return Math.max(fetchWaitMs, Math.ceil(soonestMs - nowMs))
}

/**
 * The most bytes that a fetch brings from a partition, except for retry topics. With this limit, one fetch
 * brings large batches from several partitions, and a delivery costs a few per cent less CPU. On a retry
 * topic the limit is half as high. There, the worker looks at the head (the first waiting record) again and
 * again, and each time fetches the records behind it too.
 */
const liveFetchBytes = 128 * 1024

/**
 * Fetches from one partition. Begins when this member starts the partition, and ends when the member loses
 * it. Decides when fetching pauses, at which offset it continues, and how long it waits for the head (the
 * first waiting record) of a retry topic.
 */
export class Feed implements FetchListener, KnownLog {
  readonly #options: FeedOptions
  #start: FeedStart
  #handle: FetchHandle | undefined
  /** The wait until the head (the first waiting record) of a retry topic is due. */
  readonly #headWait = new RetryWait()
  #isPaused = false
  /**
   * True when the last record was taken long after it was available or due. The partition then has a backlog.
   */
  #isBehind = false

  /** Prepares a feed. The feed reads nothing before `open` is called. */
  constructor(options: FeedOptions, start: FeedStart) {
    this.#options = options
    this.#start = start
  }

  /**
   * Changes the offset at which reading starts. Call it before `open`. The new offset must not be lower than
   * the offset with which the feed was made.
   */
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

  get isPaused(): boolean {
    return this.#isPaused
  }

  /**
   * The time when the head (the first waiting record) of a retry topic is due, in epoch milliseconds. 0 while
   * no record waits.
   */
  get headDueMs(): number {
    return this.#headWait.dueMs
  }

  /**
   * The time of the next look at the head (the first waiting record) of a retry topic, in epoch milliseconds.
   */
  get lookAtMs(): number {
    return this.#headWait.lookAtMs
  }

  open(): void {
    const { partition, fetcher } = this.#options
    if (partition.isPulled) return
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
    this.#headWait.close()
    this.#handle?.close()
  }

  /**
   * The end of the log as the partition's leader last reported it. `atMs` is the time at which the leader was
   * asked, in epoch milliseconds. `atMs` is 0 before the first answer.
   */
  get end(): FetchHandle['end'] {
    return this.#handle?.end ?? { offset: 0, atMs: 0 }
  }

  get trouble(): string | undefined {
    return this.#handle?.trouble
  }

  /** Pauses fetching if there is a reason to pause. Otherwise, resumes it. */
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
    return isHeld || this.#headWait.dueMs > 0 || partition.wantsPause
  }

  batch({ from, records, nextOffset }: FetchedBatch): void {
    const { partition, gate } = this.#options
    const { top } = partition.watermark
    // This batch isn't taken, so it must be fetched again. Any offsets between `top` and the batch must be
    // fetched too.
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

  /**
   * Takes a record. Returns false if the record isn't due. This record and all later records will then be
   * fetched again.
   */
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
   * Pauses the partition until the next look at its head, the record at `offset`. All records of a retry
   * topic wait equally long. So they fall due in the order of their offsets, and only the head has to be
   * looked at. Nothing of the batch is kept, so the wait costs no memory.
   */
  #waitForHead(offset: number, dueMs: number): void {
    const { partition } = this.#options
    this.#headWait.begin({ dueMs, turn: partition.turn }, () => this.applyPause())
    this.#handle?.seek(offset)
    this.applyPause()
  }
}
