import { EpochHistory } from './epoch-history.ts'
import type { FetchPosition } from './fetch-message.ts'
import type { Truncation } from './positions.ts'
import type { FetchedRecord } from './record-batch.ts'

/** What one fetch has brought of a partition. */
export type FetchedBatch = {
  /** The offset that was asked for. */
  readonly from: number
  /**
   * In order, none before `from`, without what belongs to transactions: markers, and records of aborted ones.
   * May be empty.
   */
  readonly records: readonly FetchedRecord[]
  /**
   * Of the offsets from `from` to before this one there is nothing but `records`. The next fetch asks for it.
   */
  readonly nextOffset: number
}

/** Told one after the other. None of them may throw or wait; they may use the handle. */
export type FetchListener = {
  /** Only while the handle is neither closed nor paused, and stands where this was asked for. */
  batch(batch: FetchedBatch): void
  /** Records `from` to before `to` were deleted before they were read: it goes on at `to`. It is logged. */
  lost(from: number, to: number): void
  /** The log isn't the one that was being read. Nothing is read until `seek` or `close`. It isn't logged. */
  truncated(truncation: Truncation): void
}

export type FetchOrder = {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /** Of the last record before `offset`; -1 or absent where it isn't known. */
  readonly leaderEpoch?: number | undefined
  /** Of the log that `offset` belongs to, as `locate` has found it. */
  readonly topicId?: string | undefined
  readonly isPaused?: boolean
  /** The most bytes that one fetch brings of it, as far as its batches are no larger; absent: 64 KiB. */
  readonly maxBytes?: number
  readonly on: FetchListener
}

/**
 * One partition that is being read, by one owner. What was fetched for another handle never reaches this one.
 */
export type FetchHandle = {
  readonly topic: string
  readonly partition: number
  /** The offset that is asked for next. */
  readonly position: number
  readonly isPaused: boolean
  /**
   * Where the log ends, as the leader has told last; `atMs`: when it was asked, in epoch milliseconds, 0
   * before the first answer.
   */
  readonly end: { readonly offset: number; readonly atMs: number }
  /** Where the log begins, as the leader has told last; -1 before that. */
  readonly logStart: number
  /** Why nothing is read of it, in words; `undefined` while it is well. */
  readonly trouble: string | undefined
  /**
   * The leader epoch of the last record before `offset`, as far as it was read here; -1 where it isn't known.
   * For commits.
   */
  leaderEpochBefore(offset: number): number
  pause(): void
  resume(): void
  /** Reads from there on. After `truncated`: takes the log for the one that is there now. */
  seek(offset: number): void
  close(): void
}

/** What a handle asks of the one that reads for it. */
export type HandleOwner = {
  /** Something may be read now that couldn't. */
  wake(handle: PartitionHandle): void
  topicIdOf(topic: string): string | undefined
  closed(handle: PartitionHandle): void
  log: HandleLog
}

type HandleLog = Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>

const minBackoffMs = 100
const maxBackoffMs = 5_000
/** A leader that moves, or a broker that starts again, is no trouble: it is one when it lasts. */
const troubleAfterMs = 3_000

/** The state of a partition that is read. The fetcher decides by it; its owner sees a `FetchHandle`. */
export class PartitionHandle implements FetchHandle, FetchPosition {
  readonly topic: string
  readonly partition: number
  readonly on: FetchListener
  readonly maxBytes: number | undefined
  readonly #owner: HandleOwner
  #epochs: EpochHistory
  #position: number
  #isPaused: boolean
  #isClosed = false
  /** It was told of a truncation, and waits for `seek`. */
  #isResting = false
  /** Grows with each seek: what was asked before is dropped. */
  #turn = 0
  #trouble: string | undefined
  #failures = 0
  #failingSinceMs = 0
  #waitUntilMs = 0
  /** The broker that leads it. */
  nodeId: number | undefined
  /** That of the leader. */
  leaderEpoch = -1
  /** Of the log that the position belongs to. */
  topicId: string | undefined
  /** It has to be found out whether the log is still the same. */
  mustCheck = false
  /** How often the batch at the position came damaged. */
  damaged = 0
  logStart = -1
  #endOffset = -1
  #endAtMs = 0

  constructor(
    { topic, partition, offset, leaderEpoch = -1, topicId, isPaused = false, maxBytes, on }: FetchOrder,
    owner: HandleOwner,
  ) {
    this.topic = topic
    this.partition = partition
    this.on = on
    this.maxBytes = maxBytes
    this.topicId = topicId
    this.#owner = owner
    this.#position = offset
    this.#isPaused = isPaused
    this.#epochs = new EpochHistory(offset, leaderEpoch)
  }

  get position(): number {
    return this.#position
  }

  /** As a `FetchPosition`. */
  get offset(): number {
    return this.#position
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

  get waitUntilMs(): number {
    return this.#waitUntilMs
  }

  get end(): { readonly offset: number; readonly atMs: number } {
    return { offset: this.#endOffset, atMs: this.#endAtMs }
  }

  get endAtMs(): number {
    return this.#endAtMs
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
    if (this.#isResting) this.#beginAnew(offset)
    this.#owner.wake(this)
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#turn++
    this.#owner.closed(this)
  }

  /** Whether it may be asked for now. */
  isReady(nowMs: number): boolean {
    return !this.#isPaused && this.isWatched && !this.mustCheck && this.#waitUntilMs <= nowMs
  }

  /** It is open, and the log is taken for the same. */
  get isWatched(): boolean {
    return !this.#isClosed && !this.#isResting
  }

  /** Goes on behind what was read. */
  advance(offset: number): void {
    this.#position = offset
    this.damaged = 0
  }

  /** What was read is of these epochs. */
  learn(epochs: readonly { readonly from: number; readonly leaderEpoch: number }[]): void {
    for (const { from, leaderEpoch } of epochs) this.#epochs.add(from, leaderEpoch)
  }

  endsAt(offset: number, askedAtMs: number): void {
    this.#endOffset = offset
    this.#endAtMs = askedAtMs
  }

  /** As far as was told before, at that time too. */
  stillEnds(askedAtMs: number): void {
    if (this.#endOffset >= 0) this.#endAtMs = askedAtMs
  }

  rest(truncation: Truncation): void {
    this.#isResting = true
    this.mustCheck = false
    this.#turn++
    this.on.truncated(truncation)
  }

  /**
   * It can't be read now. `isCertain`: it won't be well by itself. Looks again after a while, which grows.
   */
  failed(reason: string, { isCertain = false } = {}): void {
    const nowMs = Date.now()
    if (this.#failures === 0) this.#failingSinceMs = nowMs
    this.#waitUntilMs = nowMs + Math.min(maxBackoffMs, minBackoffMs * 2 ** Math.min(this.#failures, 16))
    this.#failures++
    const isTrouble = isCertain || nowMs - this.#failingSinceMs >= troubleAfterMs
    if (this.#trouble === undefined && isTrouble) this.#sayTrouble(reason)
    if (isTrouble) this.#trouble = reason
  }

  /**
   * A batch isn't what was written, however often it is fetched: it is handed on as a record that says so.
   */
  sayDamaged(nextOffset: number): void {
    const { topic, partition, position: from } = this
    const message =
      'a batch is damaged at the broker: its records are handed on as one that can not be read; check the disk of the broker, and its replicas'
    this.#owner.log.error({ topic, partition, from, to: nextOffset }, message)
  }

  /** The leader has answered for it. */
  succeeded(): void {
    if (this.#failures === 0) return
    if (this.#trouble !== undefined) {
      const { topic, partition } = this
      const forMs = Date.now() - this.#failingSinceMs
      this.#owner.log.info({ topic, partition, forMs }, 'a partition can be read again')
    }
    this.#failures = 0
    this.#waitUntilMs = 0
    this.#trouble = undefined
  }

  /** Something has changed: it is tried at once. */
  hurry(): void {
    this.#waitUntilMs = 0
  }

  #sayTrouble(trouble: string): void {
    const { topic, partition } = this
    const message = 'a partition can not be read: it waits, and is tried again; the others go on'
    this.#owner.log.warn({ topic, partition, trouble }, message)
  }

  /** Of the log that is there now nothing was read. */
  #beginAnew(offset: number): void {
    this.#isResting = false
    this.topicId = this.#owner.topicIdOf(this.topic)
    this.#epochs = new EpochHistory(offset, -1)
  }
}
