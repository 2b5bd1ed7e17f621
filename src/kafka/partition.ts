import {
  type CommitMemory,
  decodeCommitMetadata,
  encodeCommitMetadata,
  maxRememberedOffsets,
} from './commit-metadata.ts'
import { OldestRecord } from './oldest-record.ts'
import { Watermark } from './watermark.ts'

/** What the group has for a partition; offset -1 where it has nothing. */
export type StoredCommit = {
  readonly offset: number
  readonly metadata: string | null
  /** In which the record before the offset was written; -1 or absent where that isn't known. */
  readonly leaderEpoch?: number
}

/** The log that a partition is read from, as far as its owner knows it. */
export type KnownLog = {
  /** In 22 characters; `undefined` where the brokers have none. */
  readonly topicId: string | undefined
  /** In which the last record before `offset` was written; -1 where that isn't known. */
  leaderEpochBefore(offset: number): number
}

export const noCommit: StoredCommit = { offset: -1, metadata: null }

/** What of a partition a commit says. */
export type Standing = { position: number; settledCount: number; isFinal: boolean }

const nowhere: Standing = { position: 0, settledCount: 0, isFinal: false }

/** One partition that this member owns: what it has taken, what it may commit, and why it doesn't fetch. */
export class Partition {
  readonly topic: string
  readonly id: number
  /**
   * How long a record of this topic waits after its append, in milliseconds; 0 for topics that don't wait.
   */
  readonly waitMs: number
  /** It is begun only when the state of its unit is there. */
  readonly needsState: boolean
  /** What is settled above the watermark is remembered in the commit. */
  readonly hasWindow: boolean
  watermark = new Watermark(0)
  /** Its owner before may not be done with it: nothing is fetched until `begin`. */
  isWaiting = true
  /** Nobody else has anything of it in flight any more; if it still waits, then for the state of its unit. */
  isCleared = false
  /**
   * Of the records below, an owner before may have begun some that it hasn't settled: it left without a word.
   */
  begunBelow = 0
  /** Those who can take no more of its records at the moment, each for a reason of its own. */
  readonly #fullFor = new Set<string>()
  /** It belongs to another member now; what is in flight ends here, what waits is let go. */
  isLost = false
  /**
   * The group has gone on without this member: the next owner waits for nothing of it, and delivers all again
   * that isn't committed.
   */
  isElsewhere = false
  /** The last record taken was long there to be taken: this partition has a backlog. */
  isBehind = false
  lostAtMs = 0
  /** When in each period a busy retry topic's head is looked at, 0 to 1. */
  turn = 0
  /** When the head of a retry topic is due, in epoch milliseconds; 0 while nothing waits. */
  headDueMs = 0
  /** When it is looked at next, in epoch milliseconds. */
  lookAtMs = 0
  /** One past the partition's last record, as far as known. */
  endOffset = 0
  /** Nothing is fetched of it. */
  isPaused = false
  /** What its owner knows of records from this offset on is void: the log has other ones there. */
  knownBelow = Infinity
  /** That its log isn't the one that was read before has been said, and counted. */
  isTruncationReported = false
  /** It has another log than before, and stands still for that. */
  isStopped = false
  /**
   * Why it isn't begun, or not read: what is wrong with its log, in words; `undefined` while nothing is known
   * to be.
   */
  trouble: string | undefined
  /** Told when the last record that was out has come back. */
  onIdle: (() => void) | undefined
  /** Which owner this is; of two that commit, the later one is right. */
  #epoch = 0
  /** Records that were handed out, and have neither settled nor been given back. */
  #lent = 0
  /** Grows with each record that settles. */
  #settledCount = 0
  /** All up to this offset were there at that time. */
  #seen = { offset: -1, atMs: 0 }
  #committed = nowhere
  #endAsked = { offset: 0, atMs: 0 }
  #endSeenMs = 0
  #oldest = new OldestRecord()
  #wasLeftOpen = false
  #log: KnownLog | undefined
  /** Of the last record that an owner before has left as settled, which may not have been read here yet. */
  #rememberedEpoch = -1

  constructor(
    topic: string,
    id: number,
    waitMs: number,
    { needsState = false, hasWindow = true }: { needsState?: boolean; hasWindow?: boolean } = {},
  ) {
    this.topic = topic
    this.id = id
    this.waitMs = waitMs
    this.needsState = needsState
    this.hasWindow = hasWindow
  }

  /** Its owner before is done with it, or had its time. `stored` is what that one left. */
  clear(stored: StoredCommit): void {
    const memory = memoryOf(stored)
    this.isCleared = true
    // So that what it has still to settle is known while it waits.
    if (stored.offset >= 0) this.watermark = new Watermark(stored.offset)
    this.begunBelow = memory?.begunBelow ?? 0
    this.#wasLeftOpen = stored.offset >= 0 && memory?.isFinal !== true
  }

  /** Cleared, and its owner before left no final mark. */
  get wasLeftOpen(): boolean {
    return this.#wasLeftOpen
  }

  /**
   * Goes on where the group stands, as its next owner. Commit once before anything is fetched: that ends the
   * mark of the owner before.
   */
  begin(stored: StoredCommit, log?: KnownLog): void {
    const memory = memoryOf(stored)
    const settledAbove = memory?.settledAbove.filter((offset) => offset < this.knownBelow)
    this.watermark = new Watermark(stored.offset, settledAbove)
    this.#epoch = (memory?.epoch ?? 0) + 1
    this.#committed = nowhere
    this.#oldest = new OldestRecord()
    this.#log = log
    this.#rememberedEpoch = memory?.settledEpoch ?? -1
  }

  /**
   * The same, from `offset` of a log that isn't the one that the commit was made of: what that one says of
   * records is void. Goes on counting owners where it ends.
   */
  beginAnew(stored: StoredCommit, offset: number, log?: KnownLog): void {
    this.begin(stored, log)
    this.watermark = new Watermark(offset)
    this.begunBelow = 0
  }

  /** Records up to `offset` were deleted before they could be read. */
  passOver(offset: number): void {
    this.watermark.skipTo(offset)
  }

  /** Invariant: where there is a window, span stays within what a commit can remember, plus one fetch. */
  get wantsPause(): boolean {
    const isWindowFull = this.hasWindow && this.watermark.span >= maxRememberedOffsets
    return this.isWaiting || this.isFull || this.headDueMs > 0 || isWindowFull
  }

  /**
   * When a record may be taken, in epoch milliseconds: so long after its append as this topic waits. An
   * append in the future is another clock's, or a producer's own idea of time: it counts from when the record
   * is known to have been there, so that nothing waits for longer, nor what is behind it.
   */
  dueMsOf(offset: number, timestampMs: number, nowMs: number): number {
    if (timestampMs <= nowMs) return timestampMs + this.waitMs
    if (offset > this.#seen.offset) this.#seen = { offset: Math.max(offset, this.endOffset - 1), atMs: nowMs }
    return this.#seen.atMs + this.waitMs
  }

  /** Somebody can take no more of its records. */
  get isFull(): boolean {
    return this.#fullFor.size > 0
  }

  setFull(holder: string, isFull: boolean): void {
    if (isFull) this.#fullFor.add(holder)
    else this.#fullFor.delete(holder)
  }

  /** A record came, which may not be due yet. */
  see(offset: number, timestampMs: number): void {
    this.#oldest.see(offset, timestampMs, this.watermark.position)
  }

  /** It is taken; whether it is new, and so handed out. */
  take(offset: number): boolean {
    if (this.watermark.receive(offset) !== 'new') return false
    this.#lent++
    return true
  }

  settle(offset: number): void {
    this.watermark.settle(offset)
    this.#settledCount++
    this.#returned()
  }

  /** A record comes back unsettled: it is for the next owner. */
  giveBack(): void {
    this.#returned()
  }

  /** Nothing of it is out. */
  get isIdle(): boolean {
    return this.#lent === 0
  }

  /** Where it stands. Once nothing more is begun, the first commit with nothing out is the final one. */
  standing(isEnding: boolean): Standing {
    const isFinal = (isEnding || this.isLost) && this.isIdle
    // Without a window nobody is told what settled above the watermark, so it is no news.
    const settledCount = this.hasWindow ? this.#settledCount : 0
    return { position: this.watermark.position, settledCount, isFinal }
  }

  /** Whether the group doesn't know yet. */
  isNews({ position, settledCount, isFinal }: Standing): boolean {
    const known = this.#committed
    return position !== known.position || settledCount !== known.settledCount || isFinal !== known.isFinal
  }

  /** Remembers what is settled of so many offsets above the position. */
  commitOf({ position, isFinal }: Standing, memory = maxRememberedOffsets): StoredCommit {
    const settledAbove = this.hasWindow ? this.watermark.settledAbove(memory) : []
    const settledEpoch = this.hasWindow ? this.#epochOf(this.watermark.lastSettledAbove(memory)) : -1
    const topicId = this.#log?.topicId
    return {
      offset: position,
      leaderEpoch: this.#log?.leaderEpochBefore(position) ?? -1,
      metadata: encodeCommitMetadata(position, settledAbove, {
        isFinal,
        epoch: this.#epoch,
        ...(topicId !== undefined && { topicId }),
        ...(settledEpoch >= 0 && { settledEpoch }),
        // The next owner has to know what is left of it, however well this one leaves.
        ...(this.begunBelow > position && { begunBelow: this.begunBelow }),
      }),
    }
  }

  /** Of the leader who wrote a record that is settled; -1 where that isn't known. */
  #epochOf(offset: number): number {
    if (offset < 0) return -1
    return offset < this.watermark.top
      ? (this.#log?.leaderEpochBefore(offset + 1) ?? -1)
      : this.#rememberedEpoch
  }

  committed(standing: Standing): void {
    this.#committed = standing
  }

  /** A later owner has begun: a commit of this one would put the group back. */
  isOvertaken(stored: StoredCommit | undefined): boolean {
    return stored !== undefined && (memoryOf(stored)?.epoch ?? 0) > this.#epoch
  }

  /** The broker has said, when it was asked at that time, where the partition ends. */
  endsAt(offset: number, askedAtMs: number): void {
    this.endOffset = Math.max(this.endOffset, offset)
    this.#endAsked = { offset, atMs: askedAtMs }
  }

  /**
   * When all that was there was last known to have been taken, in epoch milliseconds; 0 while unknown. Who
   * can take no more may still hold what came.
   */
  get endSeenMs(): number {
    const { offset, atMs } = this.#endAsked
    if (!this.isWaiting && !this.isFull && this.watermark.top >= offset) this.#endSeenMs = atMs
    return this.#endSeenMs
  }

  /**
   * When the oldest record was appended that isn't settled, in epoch milliseconds; 0 where there is none, or
   * it isn't known.
   */
  get oldestUnsettledMs(): number {
    const { endOffset, endSeenMs } = this
    return this.#oldest.appendedMs(this.watermark.position, { end: endOffset, endSeenMs })
  }

  /** Records that the group has still to settle, as far as known. */
  get lag(): number {
    return Math.max(0, this.endOffset - this.watermark.position)
  }

  #returned(): void {
    this.#lent--
    if (this.#lent === 0) this.onIdle?.()
  }
}

/** What an owner has left with its commit; `undefined` where there is none, or another program wrote it. */
export function memoryOf(stored: StoredCommit): CommitMemory | undefined {
  return stored.offset < 0 ? undefined : decodeCommitMetadata(stored.offset, stored.metadata)
}
