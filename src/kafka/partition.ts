import { encodeCommitMetadata, maxRememberedOffsets } from './commit-metadata.ts'
import { LogEnd } from './log-end.ts'
import { OldestRecord } from './oldest-record.ts'
import { type KnownLog, memoryOf, type StoredCommit } from './stored-commit.ts'
import { Watermark } from './watermark.ts'

/** The state of a partition that a commit records. */
export type Standing = { position: number; settledCount: number; isFinal: boolean }

const nowhere: Standing = { position: 0, settledCount: 0, isFinal: false }

export type PartitionOptions = {
  /** True if the partition begins only when the state of its unit is ready. */
  readonly needsState?: boolean
  /** True if the commit records what is settled above the watermark. */
  readonly hasWindow?: boolean
  /** The moment in each period, 0 to 1, at which the head of a busy retry topic is looked at. */
  readonly turn?: number
}

/**
 * A partition that this member owns: what the member has taken, what it may commit, and why the partition
 * isn't read yet.
 */
export class Partition {
  readonly topic: string
  readonly id: number
  /** The time that a record waits after its append, in milliseconds; 0 for topics that don't wait. */
  readonly waitMs: number
  readonly needsState: boolean
  readonly hasWindow: boolean
  readonly turn: number
  #watermark = new Watermark(0)
  #isWaiting = true
  #isCleared = false
  #begunBelow = 0
  /** The parts of the worker that can take no more records of this partition at the moment. */
  readonly #fullFor = new Set<string>()
  #isLost = false
  #lostAtMs = 0
  #isElsewhere = false
  /**
   * The offset below which the log has the records that the previous owner knew. From this offset on, the log
   * has other records.
   */
  #knownBelow = Infinity
  #isTruncationReported = false
  #isStopped = false
  #trouble: string | undefined
  /** Called when the last record that was handed out has come back. */
  #onIdle: (() => void) | undefined
  /** The number of this owner. If two owners commit, the owner with the higher number is right. */
  #epoch = 0
  /** The number of records that were handed out, and have neither settled nor been given back. */
  #lent = 0
  /** A counter that grows with each record that settles. */
  #settledCount = 0
  #committed = nowhere
  readonly #end = new LogEnd()
  #oldest = new OldestRecord()
  #wasLeftOpen = false
  #log: KnownLog | undefined
  /**
   * The leader epoch of the last record that the previous owner's commit lists as settled. This member may
   * not have read that record yet.
   */
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

  /** The watermark, and the range of the records that were handed out. */
  get watermark(): Pick<Watermark, 'position' | 'top' | 'span' | 'heldCount'> {
    return this.#watermark
  }

  /**
   * Returns true until `begun` is called. Nothing is fetched before, because the previous owner may not have
   * finished, or the state of the unit isn't ready.
   */
  get isWaiting(): boolean {
    return this.#isWaiting
  }

  /**
   * Returns true once nobody else counts as having requests in flight for the partition. If the partition
   * still waits then, it waits for the state of its unit.
   */
  get isCleared(): boolean {
    return this.#isCleared
  }

  /** The offset below which a previous owner without a final mark may have started unsettled records. */
  get begunBelow(): number {
    return this.#begunBelow
  }

  /**
   * Returns true if the partition belongs to another member now. Requests in flight are finished, and waiting
   * records are given back.
   */
  get isLost(): boolean {
    return this.#isLost
  }

  /** The time of the loss in epoch milliseconds; 0 while the partition isn't lost. */
  get lostAtMs(): number {
    return this.#lostAtMs
  }

  /**
   * Returns true if the group has gone on without this member. Then the next owner doesn't wait for this one,
   * and repeats all deliveries that aren't committed.
   */
  get isElsewhere(): boolean {
    return this.#isElsewhere
  }

  /** True if it was reported already that the partition has another log than before. */
  get isTruncationReported(): boolean {
    return this.#isTruncationReported
  }

  /** Returns true if the partition isn't read because it has another log than before. */
  get isStopped(): boolean {
    return this.#isStopped
  }

  /**
   * The reason why the partition isn't started or isn't read: the fault of its log, in words. `undefined`
   * while no fault is known.
   */
  get trouble(): string | undefined {
    return this.#trouble
  }

  /**
   * Notes that the partition begins again with another log, which has other records from `offset` on. The
   * difference was reported already.
   */
  readsAnotherLog(offset: number): void {
    this.#knownBelow = offset
    this.#isTruncationReported = true
  }

  /** Notes that the partition can't begin now, and what is wrong with its log. */
  cannotBegin(trouble: string): void {
    this.#trouble = trouble
  }

  /** Notes that the partition isn't started, because it has another log than before. */
  standStill(why: string): void {
    this.#isStopped = true
    this.#trouble = why
  }

  /**
   * Notes that the log was found, and ends at `end`. From `below` on, the log doesn't have the records that
   * the previous owner knew.
   */
  findLog({ below, end }: { below: number; end: number }): void {
    this.#isStopped = false
    this.#trouble = undefined
    this.#knownBelow = Math.min(this.#knownBelow, below)
    if (this.#wasLeftOpen) this.#begunBelow = Math.max(this.#begunBelow, end)
  }

  /** Notes that fetching begins. */
  begun(): void {
    this.#isWaiting = false
  }

  /**
   * Notes that the partition goes to another member. `onIdle` is called when the last record that was handed
   * out has come back.
   */
  lose(onIdle: () => void, nowMs: number): void {
    this.#isLost = true
    this.#lostAtMs = nowMs
    this.#onIdle = onIdle
  }

  /** Notes that the group goes on without this member. */
  goElsewhere(): void {
    this.#isElsewhere = true
  }

  /** Notes that the log has records up to `endOffset` at least. */
  reachesTo(endOffset: number): void {
    this.#end.reachesTo(endOffset)
  }

  /** Notes that the previous owner has finished, or that its time is up. `stored` is its last commit. */
  clear(stored: StoredCommit): void {
    const memory = memoryOf(stored)
    this.#isCleared = true
    // This watermark makes the lag known while the partition waits.
    if (stored.offset >= 0) this.#watermark = new Watermark(stored.offset)
    this.#begunBelow = memory?.begunBelow ?? 0
    this.#wasLeftOpen = stored.offset >= 0 && memory?.isFinal !== true
  }

  /** Returns true if the partition is cleared, and its previous owner left no final mark. */
  get wasLeftOpen(): boolean {
    return this.#wasLeftOpen
  }

  /**
   * Continues from the group's commit, as the next owner. Commit once before anything is fetched: that commit
   * removes the final mark of the previous owner.
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
   * Begins at `offset` of a log that isn't the one that the commit describes. Nothing that the commit says
   * about records applies. Only its epoch is continued.
   */
  beginAnew(stored: StoredCommit, offset: number, log?: KnownLog): void {
    this.begin(stored, log)
    this.#watermark = new Watermark(offset)
    this.#begunBelow = 0
  }

  /** Passes over all offsets before `offset`. Any records at these offsets were taken or deleted. */
  passOver(offset: number): void {
    this.#watermark.skipTo(offset)
  }

  /**
   * Returns true if fetching should pause. Invariant: in a partition with a window, the span stays within
   * what a commit can remember, plus one fetch.
   */
  get wantsPause(): boolean {
    const isWindowFull = this.hasWindow && this.#watermark.span >= maxRememberedOffsets
    return this.#isWaiting || this.isFull || isWindowFull
  }

  /**
   * Returns when a record may be taken, in epoch milliseconds: its append time plus the wait of this topic.
   * An append time in the future comes from another clock, or from a producer that sets times itself. Such a
   * record waits from the time since which it is known to be in the log. So neither it nor the records after
   * it wait for longer than the topic says.
   */
  dueMsOf(offset: number, timestampMs: number, nowMs: number): number {
    if (timestampMs <= nowMs) return timestampMs + this.waitMs
    return this.#end.thereSinceMs(offset, nowMs) + this.waitMs
  }

  /**
   * Returns true if some part of the worker can take no more records of this partition. Fetching from it then
   * pauses.
   */
  get isFull(): boolean {
    return this.#fullFor.size > 0
  }

  setFull(holder: string, isFull: boolean): void {
    if (isFull) this.#fullFor.add(holder)
    else this.#fullFor.delete(holder)
  }

  /** Notes a record that came, which may not be due yet. */
  see(offset: number, timestampMs: number): void {
    this.#oldest.see(offset, timestampMs, this.#watermark.position)
  }

  /** Takes a record. Returns true if the record is new, and so is handed out. */
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

  /** Takes a record back unsettled. The next owner delivers it. */
  giveBack(): void {
    this.#returned()
  }

  /** Returns true if all records that were handed out have come back. */
  get isIdle(): boolean {
    return this.#lent === 0
  }

  /**
   * Returns the state that a commit records. `isEnding`: the member stops. If the member stops or has lost
   * the partition, and all records that were handed out have come back, the commit has the final mark.
   */
  standing(isEnding: boolean): Standing {
    const isFinal = (isEnding || this.#isLost) && this.isIdle
    // Without a window, no commit lists what is settled above the watermark, so such records need no commit.
    const settledCount = this.hasWindow ? this.#settledCount : 0
    return { position: this.#watermark.position, settledCount, isFinal }
  }

  /** Returns true if the group doesn't know this state yet. */
  isNews({ position, settledCount, isFinal }: Standing): boolean {
    const known = this.#committed
    return position !== known.position || settledCount !== known.settledCount || isFinal !== known.isFinal
  }

  /** Makes a commit that lists what is settled of the next `memory` offsets above the position. */
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
        // The next owner has to know this even if the present one leaves with a final mark.
        ...(this.#begunBelow > position && { begunBelow: this.#begunBelow }),
      }),
    }
  }

  /** Returns the epoch of the leader that wrote a settled record; -1 if it isn't known. */
  #epochOf(offset: number): number {
    if (offset < 0) return -1
    return offset < this.#watermark.top
      ? (this.#log?.leaderEpochBefore(offset + 1) ?? -1)
      : this.#rememberedEpoch
  }

  committed(standing: Standing): void {
    this.#committed = standing
  }

  /**
   * Returns true if a later owner has started the partition. A commit of this owner would then set the group
   * back.
   */
  isOvertaken(stored: StoredCommit | undefined): boolean {
    return stored !== undefined && (memoryOf(stored)?.epoch ?? 0) > this.#epoch
  }

  /** Notes where the log ended, by the broker's answer to a request that was sent at `askedAtMs`. */
  endsAt(offset: number, askedAtMs: number): void {
    this.#end.reported(offset, askedAtMs)
  }

  /**
   * A time, in epoch milliseconds: every record that the log had at that time was taken. It is the latest
   * known one; 0 while none is known. The time doesn't move while `isFull`, since the part of the worker that
   * is full may still have records to take.
   */
  get endSeenMs(): number {
    const isTaking = !this.#isWaiting && !this.isFull
    return this.#end.takenMs(isTaking ? this.#watermark.top : undefined)
  }

  /**
   * The append time of the oldest record that isn't settled, in epoch milliseconds. 0 if there is none, or if
   * it isn't known.
   */
  get oldestUnsettledMs(): number {
    const { endSeenMs } = this
    return this.#oldest.appendedMs(this.#watermark.position, { end: this.#end.offset, endSeenMs })
  }

  /** The number of records that the group has still to settle, as far as known. */
  get lag(): number {
    return Math.max(0, this.#end.offset - this.#watermark.position)
  }

  #returned(): void {
    this.#lent--
    if (this.#lent === 0) this.#onIdle?.()
  }
}
