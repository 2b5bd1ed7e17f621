import { encodeCommitMetadata, maxRememberedOffsets } from './commit-metadata.ts'
import { LogEnd } from './log-end.ts'
import { OldestRecord } from './oldest-record.ts'
import { type KnownLog, memoryOf, type StoredCommit } from './stored-commit.ts'
import { Watermark } from './watermark.ts'

/** What of a partition a commit says. */
export type Standing = { position: number; settledCount: number; isFinal: boolean }

const nowhere: Standing = { position: 0, settledCount: 0, isFinal: false }

export type PartitionOptions = {
  /** It is begun only when the state of its unit is there. */
  readonly needsState?: boolean
  /** What is settled above the watermark is remembered in the commit. */
  readonly hasWindow?: boolean
  /** When in each period a busy retry topic's head is looked at, 0 to 1. */
  readonly turn?: number
}

/** One partition that this member owns: what it has taken, what it may commit, and why it isn't begun. */
export class Partition {
  readonly topic: string
  readonly id: number
  /**
   * How long a record of this topic waits after its append, in milliseconds; 0 for topics that don't wait.
   */
  readonly waitMs: number
  readonly needsState: boolean
  readonly hasWindow: boolean
  readonly turn: number
  #watermark = new Watermark(0)
  #isWaiting = true
  #isCleared = false
  #begunBelow = 0
  /** Those who can take no more of its records at the moment, each for a reason of its own. */
  readonly #fullFor = new Set<string>()
  #isLost = false
  #lostAtMs = 0
  #isElsewhere = false
  /** What its owner knows of records from this offset on is void: the log has other ones there. */
  #knownBelow = Infinity
  #isTruncationReported = false
  #isStopped = false
  #trouble: string | undefined
  /** Told when the last record that was out has come back. */
  #onIdle: (() => void) | undefined
  /** Which owner this is; of two that commit, the later one is right. */
  #epoch = 0
  /** Records that were handed out, and have neither settled nor been given back. */
  #lent = 0
  /** Grows with each record that settles. */
  #settledCount = 0
  #committed = nowhere
  readonly #end = new LogEnd()
  #oldest = new OldestRecord()
  #wasLeftOpen = false
  #log: KnownLog | undefined
  /** Of the last record that an owner before has left as settled, which may not have been read here yet. */
  #rememberedEpoch = -1

  constructor(
    topic: string,
    id: number,
    waitMs: number,
    { needsState = false, hasWindow = true, turn = 0 }: PartitionOptions = {},
  ) {
    this.topic = topic
    this.id = id
    this.waitMs = waitMs
    this.needsState = needsState
    this.hasWindow = hasWindow
    this.turn = turn
  }

  /** What has settled of it, and what was handed out. */
  get watermark(): Pick<Watermark, 'position' | 'top' | 'span' | 'heldCount'> {
    return this.#watermark
  }

  /** Its owner before may not be done with it: nothing is fetched until `begun`. */
  get isWaiting(): boolean {
    return this.#isWaiting
  }

  /** Nobody else has anything of it in flight any more; if it still waits, then for the state of its unit. */
  get isCleared(): boolean {
    return this.#isCleared
  }

  /**
   * Of the records below, an owner before may have begun some that it hasn't settled: it left without a word.
   */
  get begunBelow(): number {
    return this.#begunBelow
  }

  /** It belongs to another member now; what is in flight ends here, what waits is let go. */
  get isLost(): boolean {
    return this.#isLost
  }

  /** In epoch milliseconds; 0 before. */
  get lostAtMs(): number {
    return this.#lostAtMs
  }

  /**
   * The group has gone on without this member: the next owner waits for nothing of it, and delivers all again
   * that isn't committed.
   */
  get isElsewhere(): boolean {
    return this.#isElsewhere
  }

  /** That its log isn't the one that was read before has been said, and counted. */
  get isTruncationReported(): boolean {
    return this.#isTruncationReported
  }

  /** It has another log than before, and stands still for that. */
  get isStopped(): boolean {
    return this.#isStopped
  }

  /**
   * Why it isn't begun, or not read: what is wrong with its log, in words; `undefined` while nothing is known
   * to be.
   */
  get trouble(): string | undefined {
    return this.#trouble
  }

  /** Begins anew with another log: from `offset` on it has other records, as was said. */
  readsAnotherLog(offset: number): void {
    this.#knownBelow = offset
    this.#isTruncationReported = true
  }

  /** It can't be begun now, for what is wrong with its log. */
  cannotBegin(trouble: string): void {
    this.#trouble = trouble
  }

  /** It has another log than before, and isn't begun for that. */
  standStill(why: string): void {
    this.#isStopped = true
    this.#trouble = why
  }

  /**
   * Its log was found, and ends at `end`: nothing that its owner before knows of records from `below` on
   * holds.
   */
  findLog({ below, end }: { below: number; end: number }): void {
    this.#isStopped = false
    this.#trouble = undefined
    this.#knownBelow = Math.min(this.#knownBelow, below)
    if (this.#wasLeftOpen) this.#begunBelow = Math.max(this.#begunBelow, end)
  }

  /** Fetching begins. */
  begun(): void {
    this.#isWaiting = false
  }

  /** It goes to another member. `onIdle`: told when the last record that was out has come back. */
  lose(onIdle: () => void, nowMs: number): void {
    this.#isLost = true
    this.#lostAtMs = nowMs
    this.#onIdle = onIdle
  }

  /** The group goes on without this member. */
  goElsewhere(): void {
    this.#isElsewhere = true
  }

  /** Its log has records up to `endOffset` at least. */
  reachesTo(endOffset: number): void {
    this.#end.reachesTo(endOffset)
  }

  /** Its owner before is done with it, or had its time. `stored` is what that one left. */
  clear(stored: StoredCommit): void {
    const memory = memoryOf(stored)
    this.#isCleared = true
    // So that what it has still to settle is known while it waits.
    if (stored.offset >= 0) this.#watermark = new Watermark(stored.offset)
    this.#begunBelow = memory?.begunBelow ?? 0
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
    const settledAbove = memory?.settledAbove.filter((offset) => offset < this.#knownBelow)
    this.#watermark = new Watermark(stored.offset, settledAbove)
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
    this.#watermark = new Watermark(offset)
    this.#begunBelow = 0
  }

  /** Before `offset` there is nothing more to be taken: it was, or is deleted, or there are no records. */
  passOver(offset: number): void {
    this.#watermark.skipTo(offset)
  }

  /** Invariant: where there is a window, span stays within what a commit can remember, plus one fetch. */
  get wantsPause(): boolean {
    const isWindowFull = this.hasWindow && this.#watermark.span >= maxRememberedOffsets
    return this.#isWaiting || this.isFull || isWindowFull
  }

  /**
   * When a record may be taken, in epoch milliseconds: so long after its append as this topic waits. An
   * append in the future is another clock's, or a producer's own idea of time: it counts from when the record
   * is known to have been there, so that nothing waits for longer, nor what is behind it.
   */
  dueMsOf(offset: number, timestampMs: number, nowMs: number): number {
    if (timestampMs <= nowMs) return timestampMs + this.waitMs
    return this.#end.thereSinceMs(offset, nowMs) + this.waitMs
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
    this.#oldest.see(offset, timestampMs, this.#watermark.position)
  }

  /** It is taken; whether it is new, and so handed out. */
  take(offset: number): boolean {
    if (this.#watermark.receive(offset) !== 'new') return false
    this.#lent++
    return true
  }

  settle(offset: number): void {
    this.#watermark.settle(offset)
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
    const isFinal = (isEnding || this.#isLost) && this.isIdle
    // Without a window nobody is told what settled above the watermark, so it is no news.
    const settledCount = this.hasWindow ? this.#settledCount : 0
    return { position: this.#watermark.position, settledCount, isFinal }
  }

  /** Whether the group doesn't know yet. */
  isNews({ position, settledCount, isFinal }: Standing): boolean {
    const known = this.#committed
    return position !== known.position || settledCount !== known.settledCount || isFinal !== known.isFinal
  }

  /** Remembers what is settled of so many offsets above the position. */
  commitOf({ position, isFinal }: Standing, memory = maxRememberedOffsets): StoredCommit {
    const settledAbove = this.hasWindow ? this.#watermark.settledAbove(memory) : []
    const settledEpoch = this.hasWindow ? this.#epochOf(this.#watermark.lastSettledAbove(memory)) : -1
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
        ...(this.#begunBelow > position && { begunBelow: this.#begunBelow }),
      }),
    }
  }

  /** Of the leader who wrote a record that is settled; -1 where that isn't known. */
  #epochOf(offset: number): number {
    if (offset < 0) return -1
    return offset < this.#watermark.top
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
    this.#end.told(offset, askedAtMs)
  }

  /**
   * When all that was there was last known to have been taken, in epoch milliseconds; 0 while unknown. Who
   * can take no more may still hold what came.
   */
  get endSeenMs(): number {
    const isTaking = !this.#isWaiting && !this.isFull
    return this.#end.takenMs(isTaking ? this.#watermark.top : undefined)
  }

  /**
   * When the oldest record was appended that isn't settled, in epoch milliseconds; 0 where there is none, or
   * it isn't known.
   */
  get oldestUnsettledMs(): number {
    const { endSeenMs } = this
    return this.#oldest.appendedMs(this.#watermark.position, { end: this.#end.offset, endSeenMs })
  }

  /** Records that the group has still to settle, as far as known. */
  get lag(): number {
    return Math.max(0, this.#end.offset - this.#watermark.position)
  }

  #returned(): void {
    this.#lent--
    if (this.#lent === 0) this.#onIdle?.()
  }
}
