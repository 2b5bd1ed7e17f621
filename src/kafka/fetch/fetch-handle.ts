import { EpochHistory } from './epoch-history.ts'
import { FetchSize } from './fetch-size.ts'
import type { FetchedPartition, FetchPosition } from '../wire/fetch-message.ts'
import type { Truncation } from './positions.ts'
import type { FetchedRecord, RecordSet } from '../wire/record-batch.ts'
import { throttlePatienceMs, tooSmallForFetch } from '../wire/throttle.ts'

/** The records that one fetch has brought from one partition. */
export type FetchedBatch = {
  /** The offset that the fetch asked for. */
  readonly from: number
  /**
   * The records in the order of their offsets, none before `from`. Markers of transactions and records of
   * aborted transactions are left out. The list may be empty.
   */
  readonly records: readonly FetchedRecord[]
  /**
   * The offset that the next fetch asks for. Between `from` and this offset, only the records in `records`
   * have to be read.
   */
  readonly nextOffset: number
}

/**
 * The callbacks of a handle. They are called one after another. They must not throw or wait. They may call
 * methods of the handle.
 */
export type FetchListener = {
  /**
   * Takes a batch. Called only while the handle is open and not paused, and only if the handle's position is
   * still the offset that the fetch asked for.
   */
  batch(batch: FetchedBatch): void
  /**
   * Called when records were deleted before they were read. Their offsets are at least `from` and lower than
   * `to`. Reading continues at `to`. The fetcher logs the loss.
   */
  lost(from: number, to: number): void
  /**
   * Called when the log isn't the log that was being read. From then on nothing is read until `seek` is
   * called. The fetcher doesn't log this.
   */
  truncated(truncation: Truncation): void
}

export type FetchOrder = {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /** The leader epoch of the last record before `offset`. -1 or absent if it isn't known. */
  readonly leaderEpoch?: number | undefined
  /** The id of the topic to whose log `offset` belongs. `locate` (in positions.ts) finds this id. */
  readonly topicId?: string | undefined
  readonly isPaused?: boolean
  /**
   * The most bytes that one fetch brings from the partition, unless the first batch alone is larger. Default:
   * 64 KiB.
   */
  readonly maxBytes?: number
  readonly on: FetchListener
}

/**
 * A handle by which a caller of the fetcher reads one partition. A handle never gets batches that were
 * fetched for another handle.
 */
export type FetchHandle = {
  readonly topic: string
  readonly partition: number
  /** The offset that the next fetch asks for. */
  readonly position: number
  readonly isPaused: boolean
  /**
   * The end of the log as the leader last reported it. `atMs` is the time at which the leader was asked, in
   * epoch milliseconds. `atMs` is 0 before the first answer.
   */
  readonly end: { readonly offset: number; readonly atMs: number }
  /** The start of the log as the leader last reported it. -1 before the first report. */
  readonly logStart: number
  /**
   * The reason why nothing is read from the partition, in words. `undefined` while the partition can be read.
   */
  readonly trouble: string | undefined
  /**
   * Returns the leader epoch of the last record before `offset`. A commit contains this epoch. Returns -1 if
   * this handle hasn't read that record.
   */
  leaderEpochBefore(offset: number): number
  pause(): void
  resume(): void
  /**
   * Continues reading at this offset. If `truncated` was called before, also accepts the present log as the
   * log to read.
   */
  seek(offset: number): void
  close(): void
}

/** The callbacks and lookups that a handle needs from its fetcher. */
export type HandleOwner = {
  /** Called when the partition of a handle may be read again, after it could not be read. */
  wake(handle: PartitionHandle): void
  topicIdOf(topic: string): string | undefined
  closed(handle: PartitionHandle): void
  /** Returns true if so many bytes of an answer may be kept for a handle that is paused. */
  takeRoom(bytes: number): boolean
  giveRoom(bytes: number): void
  log: HandleLog
}

type HandleLog = Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>

/**
 * The most bytes that a fetch brings from one partition, unless the partition's handle sets another limit.
 * With a lower limit, there would be many more requests. A higher limit would also cost more, because some
 * records are fetched more than once. The records behind the head (the first waiting record) of a retry topic
 * are fetched each time that the worker looks at the head.
 */
export const maxBytesPerPartition = 64 * 1024

const minBackoffMs = 100
const maxBackoffMs = 5_000
/**
 * How long a partition has to fail before the failure counts as trouble, in milliseconds. The move of a
 * leader and the restart of a broker take less time.
 */
const troubleAfterMs = 3_000

/** The fetcher's data about one partition. The caller of the fetcher sees only a `FetchHandle`. */
export class PartitionHandle implements FetchHandle, FetchPosition {
  readonly topic: string
  readonly partition: number
  readonly on: FetchListener
  readonly #size: FetchSize
  readonly #owner: HandleOwner
  #epochs: EpochHistory
  #position: number
  #isPaused: boolean
  #isClosed = false
  /** True from the report of a truncation until `seek` is called. */
  #isResting = false
  /**
   * A number that grows with each seek, and when the log may have changed. If a request was sent before the
   * number grew, its answer is dropped.
   */
  #turn = 0
  #trouble: string | undefined
  #failures = 0
  #failingSinceMs = 0
  /** The time of the first of the throttled answers since the leader has answered for the partition. */
  #throttledSinceMs: number | undefined
  #waitUntilMs = 0
  /** An answer to a fetch from the position, which came while the handle was paused. */
  #kept: FetchedPartition | undefined
  /** The broker that leads the partition. */
  nodeId: number | undefined
  /** The present leader epoch of the partition. */
  leaderEpoch = -1
  /** The id of the topic to whose log the position belongs. */
  topicId: string | undefined
  #mustCheck = false
  /** How many times the batch at the position has arrived damaged. */
  damaged = 0
  logStart = -1
  #endOffset = -1
  #endAtMs = 0

  constructor(
    {
      topic,
      partition,
      offset,
      leaderEpoch = -1,
      topicId,
      isPaused = false,
      maxBytes = maxBytesPerPartition,
      on,
    }: FetchOrder,
    owner: HandleOwner,
  ) {
    this.topic = topic
    this.partition = partition
    this.on = on
    this.#size = new FetchSize(maxBytes)
    this.topicId = topicId
    this.#owner = owner
    this.#position = offset
    this.#isPaused = isPaused
    this.#epochs = new EpochHistory(offset, leaderEpoch)
  }

  get position(): number {
    return this.#position
  }

  /** The position, under the name that `FetchPosition` has for it. */
  get offset(): number {
    return this.#position
  }

  /** How many bytes the next fetch asks for. */
  get maxBytes(): number {
    return this.#size.bytes
  }

  get isPaused(): boolean {
    return this.#isPaused
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  get isResting(): boolean {
    return this.#isResting
  }

  get turn(): number {
    return this.#turn
  }

  get trouble(): string | undefined {
    return this.#trouble
  }

  /** True while it has to be checked whether the log is still the log that was read before. */
  get mustCheck(): boolean {
    return this.#mustCheck
  }

  /**
   * No fetch asks for the partition before this time, by `performance.now`. 0 if a fetch may ask for it now.
   */
  get waitUntilMs(): number {
    return this.#waitUntilMs
  }

  get end(): { readonly offset: number; readonly atMs: number } {
    return { offset: this.#endOffset, atMs: this.#endAtMs }
  }

  get endAtMs(): number {
    return this.#endAtMs
  }

  /** True unless everything up to the end of the log was read, as far as is known. */
  get hasMore(): boolean {
    return this.#endOffset < 0 || this.#position < this.#endOffset
  }

  leaderEpochBefore(offset: number): number {
    return this.#epochs.before(offset)
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#owner.wake(this)
  }

  seek(offset: number): void {
    this.#position = offset
    this.#turn++
    this.damaged = 0
    this.#size.reset()
    this.#drop()
    if (this.#isResting) this.#beginAnew(offset)
    this.#owner.wake(this)
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#turn++
    this.#drop()
    this.#owner.closed(this)
  }

  /** Returns true if a fetch may ask for the partition now. `nowMs` is the time by `performance.now`. */
  isReady(nowMs: number): boolean {
    return !this.#isPaused && this.isWatched && !this.#mustCheck && this.#waitUntilMs <= nowMs
  }

  /** True while the handle is open and isn't resting. */
  get isWatched(): boolean {
    return !this.#isClosed && !this.#isResting
  }

  /**
   * Notes that the log may have changed, so that it has to be checked. What was fetched before, and isn't
   * taken yet, is dropped: the check covers only the records before the position. A former leader may have
   * had other records behind it.
   */
  suspect(): void {
    if (this.#mustCheck) return
    this.#mustCheck = true
    this.#turn++
    this.#drop()
  }

  /** Notes that the log is still the log that was read before. */
  trust(): void {
    this.#mustCheck = false
  }

  /** Moves the position past the batches that were read, and notes their epochs and sizes. */
  advance({ nextOffset, epochs, sizes }: Pick<RecordSet, 'nextOffset' | 'epochs' | 'sizes'>): void {
    this.#position = nextOffset
    this.damaged = 0
    for (const { from, leaderEpoch } of epochs) this.#epochs.add(from, leaderEpoch)
    this.#size.learn(sizes)
  }

  /**
   * Notes that a fetch brought nothing, although the log may have more. The next batch may be larger than the
   * fetch has asked for.
   */
  broughtNothing(): void {
    this.#size.reset()
  }

  /**
   * Keeps an answer that came while the handle was paused, if there is room, until it is taken. Without this,
   * it would have to be fetched again. A seek drops it, and so does a new leader epoch.
   */
  keep(answer: FetchedPartition): void {
    this.#drop()
    const bytes = answer.recordSet.length
    if (!this.#owner.takeRoom(bytes)) return
    // The records are a slice of the answer, whose other partitions may not be kept.
    this.#kept = { ...answer, recordSet: Buffer.from(answer.recordSet) }
  }

  get hasKept(): boolean {
    return this.#kept !== undefined
  }

  /** Returns the kept answer, and keeps it no more. */
  takeKept(): FetchedPartition | undefined {
    const kept = this.#kept
    this.#drop()
    return kept
  }

  #drop(): void {
    if (this.#kept === undefined) return
    this.#owner.giveRoom(this.#kept.recordSet.length)
    this.#kept = undefined
  }

  endsAt(offset: number, askedAtMs: number): void {
    this.#endOffset = offset
    this.#endAtMs = askedAtMs
  }

  /** Notes that the end of the log was still the same when the leader was asked for it. */
  stillEnds(askedAtMs: number): void {
    if (this.#endOffset >= 0) this.#endAtMs = askedAtMs
  }

  rest(truncation: Truncation): void {
    this.#isResting = true
    this.#mustCheck = false
    this.#turn++
    this.#drop()
    this.on.truncated(truncation)
  }

  /**
   * Notes that the partition can't be read now. The fetcher tries again after a pause that grows with each
   * failure. If `isCertain` is true, waiting alone won't end the failure, so it counts as trouble at once.
   */
  failed(reason: string, { isCertain = false } = {}): void {
    const nowMs = performance.now()
    if (this.#failures === 0) this.#failingSinceMs = nowMs
    this.#waitUntilMs = nowMs + Math.min(maxBackoffMs, minBackoffMs * 2 ** Math.min(this.#failures, 16))
    this.#failures++
    const isTrouble = isCertain || nowMs - this.#failingSinceMs >= troubleAfterMs
    if (this.#trouble === undefined && isTrouble) this.#sayTrouble(reason)
    if (isTrouble) this.#trouble = reason
  }

  /**
   * Logs that a batch is still damaged after several fetches. In place of the batch, the caller of this
   * method gives the listener one record, which says that the batch is damaged.
   */
  sayDamaged(nextOffset: number): void {
    const { topic, partition, position: from } = this
    const message =
      'a batch is damaged at the broker: its records count as one that can not be read; check the disk of the broker, and the replicas'
    this.#owner.log.error({ topic, partition, from, to: nextOffset }, message)
  }

  /**
   * Notes that the leader has answered, and has left out this partition because a quota of this client is
   * used up. The leader says when it answers again, so this is no failure unless it lasts.
   */
  throttled(): void {
    const nowMs = performance.now()
    this.#throttledSinceMs ??= nowMs
    if (nowMs - this.#throttledSinceMs >= throttlePatienceMs)
      this.failed(tooSmallForFetch, { isCertain: true })
  }

  /** Notes that the leader has answered for the partition. */
  succeeded(): void {
    this.#throttledSinceMs = undefined
    if (this.#failures === 0) return
    if (this.#trouble !== undefined) {
      const { topic, partition } = this
      const forMs = Math.round(performance.now() - this.#failingSinceMs)
      this.#owner.log.info({ topic, partition, forMs }, 'a partition can be read again')
    }
    this.#failures = 0
    this.#waitUntilMs = 0
    this.#trouble = undefined
  }

  /** Ends the pause after a failure early, because something has changed in the cluster. */
  hurry(): void {
    this.#waitUntilMs = 0
  }

  #sayTrouble(trouble: string): void {
    const { topic, partition } = this
    const message = 'a partition can not be read: it waits, and is tried again; the others go on'
    this.#owner.log.warn({ topic, partition, trouble }, message)
  }

  /** Accepts the present log as the log to read. No record of this log has been read yet. */
  #beginAnew(offset: number): void {
    this.#isResting = false
    this.topicId = this.#owner.topicIdOf(this.topic)
    this.#epochs = new EpochHistory(offset, -1)
  }
}
