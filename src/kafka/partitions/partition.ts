import { encodeCommitMetadata, maxRememberedOffsets } from '../wire/commit-metadata.ts'
import { EarlyEpochs } from './early-epochs.ts'
import { LeftOutOffsets } from './went-nowhere.ts'
import { LogEnd } from './log-end.ts'
import { OldestRecord } from './oldest-record.ts'
import { PassedOn } from './passed-on.ts'
import { type KnownLog, memoryOf, type StoredCommit } from '../wire/stored-commit.ts'
import { type Receipt, Watermark } from './watermark.ts'

/** The progress in a partition, as a commit stores it. */
export type Standing = { position: number; settledCount: number; isFinal: boolean }

const nowhere: Standing = { position: 0, settledCount: 0, isFinal: false }

export type PartitionOptions = {
  /** True if the partition begins only when the state of its unit is ready. */
  readonly needsState?: boolean
  /** True if commits list the settled offsets above the watermark. */
  readonly hasWindow?: boolean
  /** True if the worker reads the partition itself, and this member only commits how far it is done. */
  readonly isPulled?: boolean
  /** True if commits say which settled records went nowhere. */
  readonly notesPassedOn?: boolean
  /**
   * The worker looks at the head (the first waiting record) of a busy retry topic once in each period. This
   * is the moment of the look, as a fraction (0 to 1) of the period.
   */
  readonly turn?: number
}

/**
 * A partition that this member owns. It knows which records the member has taken, which offset may be
 * committed, and why the partition isn't read yet.
 */
export class Partition {
  readonly topic: string
  readonly id: number
  /** How long a record waits after its append, in milliseconds. 0 for topics whose records don't wait. */
  readonly waitMs: number
  readonly needsState: boolean
  readonly hasWindow: boolean
  readonly isPulled: boolean
  readonly turn: number
  readonly notesPassedOn: boolean
  #leftOut: LeftOutOffsets | undefined
  #inherited: PassedOn | undefined
  #isSameLog = false
  #watermark = new Watermark(0)
  #isWaiting = true
  #isCleared = false
  #begunBelow = 0
  #readAgainBelow = 0
  /** The parts of the worker that can take no more records of this partition at the moment. */
  readonly #fullFor = new Set<string>()
  #isLost = false
  #lostAtMs = 0
  #isElsewhere = false
  /** The offset at which the log begins to differ from the log that the previous owner knew. */
  #knownBelow = Infinity
  #isTruncationReported = false
  #isStopped = false
  #trouble: string | undefined
  /** Called when the worker has settled or returned its last record of this partition. */
  #onIdle: (() => void) | undefined
  /** The epoch of this owner. If two owners commit, the owner with the higher epoch is the present owner. */
  #epoch = 0
  /** The number of records that the worker has got, and has neither settled nor returned. */
  #lent = 0
  /** The number of records that have settled so far. */
  #settledCount = 0
  #committed = nowhere
  readonly #end = new LogEnd()
  #oldest = new OldestRecord()
  #wasLeftOpen = false
  #found: StoredCommit | undefined
  #log: KnownLog | undefined
  /**
   * The leader epoch of the last record that the previous owner's commit lists as settled. This member may
   * not have read that record yet.
   */
  #rememberedEpoch = -1
  #earlyEpochs = new EarlyEpochs()

  constructor(
    topic: string,
    id: number,
    waitMs: number,
    {
      needsState = false,
      hasWindow = true,
      isPulled = false,
      notesPassedOn = false,
      turn = 0,
    }: PartitionOptions = {},
  ) {
    this.topic = topic
    this.id = id
    this.waitMs = waitMs
    this.needsState = needsState
    this.hasWindow = hasWindow
    this.isPulled = isPulled
    this.turn = turn
    this.notesPassedOn = notesPassedOn
  }

  /** The watermark, and how many records and offsets lie above it. The class `Watermark` has the details. */
  get watermark(): Pick<Watermark, 'position' | 'top' | 'span' | 'heldCount' | 'isUntaken'> {
    return this.#watermark
  }

  /**
   * Returns true until `begun` is called. Until then nothing is fetched, because the previous owner may not
   * have finished, or because the state of the unit isn't ready.
   */
  get isWaiting(): boolean {
    return this.#isWaiting
  }

  /**
   * Returns true once all previous owners have finished with the partition, or the time for the handover is
   * over. From then on, the partition waits only for the state of its unit.
   */
  get isCleared(): boolean {
    return this.#isCleared
  }

  /** Below this offset, an owner that left no final mark may have begun to deliver unsettled records. */
  get begunBelow(): number {
    return this.#begunBelow
  }

  /**
   * Below this offset, this member may read records again that a previous owner had begun. 0 if the previous
   * owner left a final mark, and if somebody has moved its commit to have records read again.
   */
  get readAgainBelow(): number {
    return this.#readAgainBelow
  }

  /** True once all records below `readAgainBelow` are settled. */
  get isReadAgainOver(): boolean {
    return this.#watermark.position >= this.#readAgainBelow
  }

  /**
   * Returns true if the partition belongs to another member now. This member still finishes the partition's
   * requests in flight, but doesn't settle the partition's waiting records.
   */
  get isLost(): boolean {
    return this.#isLost
  }

  /** The time of the loss in epoch milliseconds. 0 while the partition isn't lost. */
  get lostAtMs(): number {
    return this.#lostAtMs
  }

  /**
   * Returns true if the group has removed this member. The next owner then doesn't wait for this member, and
   * repeats the deliveries of all records that aren't committed.
   */
  get isElsewhere(): boolean {
    return this.#isElsewhere
  }

  /** True if the change to another log was reported already. */
  get isTruncationReported(): boolean {
    return this.#isTruncationReported
  }

  /** Returns true if the partition has another log than before, and isn't read for this reason. */
  get isStopped(): boolean {
    return this.#isStopped
  }

  /**
   * What is wrong with the partition's log, in words, so that the partition isn't started or read.
   * `undefined` while nothing is known to be wrong.
   */
  get trouble(): string | undefined {
    return this.#trouble
  }

  /**
   * Notes that the partition begins again with another log, which has other records from `offset` on. The
   * change to this log was reported already.
   */
  readsAnotherLog(offset: number): void {
    this.#knownBelow = offset
    this.#isTruncationReported = true
  }

  /** Notes that the log has other records from `offset` on than the previous owner knew. */
  isOtherFrom(offset: number): void {
    this.#knownBelow = Math.min(this.#knownBelow, offset)
  }

  /**
   * The offset from which on the log is known to have other records than the previous owner knew. Infinity if
   * no such offset is known.
   */
  get otherFrom(): number {
    return this.#knownBelow
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
   * Notes that the log was found, and that it ends at `end`. From the offset `below` on, the log doesn't have
   * the records that the previous owner knew. `stored` is the commit of the previous owner. `isSame` is true
   * if it is certain that the log has the same records below the committed offset.
   */
  findLog({
    below,
    end,
    stored,
    isSame = false,
  }: {
    below: number
    end: number
    stored: StoredCommit
    isSame?: boolean
  }): void {
    this.#isSameLog = isSame && stored.moved === undefined && !this.#isTruncationReported
    this.#isStopped = false
    this.#trouble = undefined
    this.#knownBelow = Math.min(this.#knownBelow, below)
    if (this.#wasLeftOpen) this.#begunBelow = Math.max(this.#begunBelow, end)
    const memory = stored.moved === undefined ? memoryOf(stored) : undefined
    this.#readAgainBelow = memory?.isFinal === false ? end : 0
  }

  /** Notes that fetching begins. */
  begun(): void {
    this.#isWaiting = false
  }

  /**
   * Notes that the partition moves to another member. `onIdle` is called when the worker has settled or
   * returned its last record of the partition.
   */
  lose(onIdle: () => void, nowMs: number): void {
    this.#isLost = true
    this.#lostAtMs = nowMs
    this.#onIdle = onIdle
  }

  /** Notes that the group has removed this member. */
  goElsewhere(): void {
    this.#isElsewhere = true
  }

  /** Notes that the log contains at least the records before `endOffset`. */
  reachesTo(endOffset: number): void {
    this.#end.reachesTo(endOffset)
  }

  /**
   * Notes that the previous owner has finished, or that the time for the handover is over. `stored` is the
   * last commit of the previous owner.
   */
  clear(stored: StoredCommit): void {
    const memory = memoryOf(stored)
    this.#isCleared = true
    this.#found = stored
    // This watermark makes the lag known while the partition waits.
    if (stored.offset >= 0) this.#watermark = new Watermark(stored.offset)
    this.#begunBelow = memory?.begunBelow ?? 0
    this.#wasLeftOpen = stored.offset >= 0 && memory?.isFinal !== true
  }

  /** Returns true if the partition is cleared, but its previous owner left no final mark. */
  get wasLeftOpen(): boolean {
    return this.#wasLeftOpen
  }

  /**
   * Continues from the group's commit, as the next owner. The caller has to commit once before anything is
   * fetched, because the new commit removes the final mark of the previous owner.
   */
  begin(stored: StoredCommit, log?: KnownLog): void {
    const memory = memoryOf(stored)
    const settledAbove = memory?.settledAbove.filter((offset) => offset < this.#knownBelow)
    this.#watermark = new Watermark(stored.offset, settledAbove)
    const epoch = memory?.epoch ?? 0
    // If a former try has committed, but could not begin, the commit has this owner's epoch already.
    if (this.#epoch === 0 || epoch !== this.#epoch) this.#epoch = epoch + 1
    this.#committed = nowhere
    this.#oldest = new OldestRecord()
    this.#log = log
    this.#rememberedEpoch = memory?.settledEpoch ?? -1
    this.#earlyEpochs = new EarlyEpochs()
    this.#inherit(stored, settledAbove)
  }

  /** Goes on with the notes of the previous owner, if they are of the same log. */
  #inherit(stored: StoredCommit, settledAbove: readonly number[] = []): void {
    this.#inherited = undefined
    if (!this.notesPassedOn) return
    const memory = this.#isSameLog ? memoryOf(stored) : undefined
    this.#leftOut = new LeftOutOffsets(stored.offset, settledAbove, memory?.leftOut)
    if (memory?.leftOut === undefined) return
    const { topic, id } = this
    const { topicId, leftOut, settledEpoch = -1 } = memory
    const { offset, leaderEpoch = -1 } = stored
    this.#inherited = new PassedOn({
      topic,
      partition: id,
      topicId,
      offset,
      leaderEpoch,
      settledAbove,
      settledEpoch,
      leftOut,
    })
  }

  /**
   * The records that former owners have passed on, as the commit from which this member began says.
   * `undefined` if the commit doesn't say it, or if it isn't certain that the log is still the same.
   */
  get inherited(): PassedOn | undefined {
    return this.#inherited
  }

  /** Frees the memory of `inherited`. */
  forgetInherited(): void {
    this.#inherited = undefined
  }

  /**
   * Begins at `offset` of a new log. The commit describes an earlier log, so its settled offsets don't apply
   * to the new log. Only the epoch of the commit is continued.
   */
  beginAnew(stored: StoredCommit, offset: number, log?: KnownLog): void {
    this.#isSameLog = false
    this.begin(stored, log)
    this.#watermark = new Watermark(offset)
    if (this.#leftOut !== undefined) this.#leftOut = new LeftOutOffsets(offset)
    this.#begunBelow = 0
    this.#readAgainBelow = 0
  }

  /** Passes over all offsets before `offset`. Any records at these offsets were taken or deleted. */
  passOver(offset: number): void {
    this.#watermark.skipTo(offset)
    this.#leftOut?.leaveOutTo(offset)
  }

  /**
   * Returns true if fetching should pause. Invariant: with a window, the number of offsets from the watermark
   * to the last fetched record is at most `maxRememberedOffsets`, plus the number of offsets of one fetch.
   */
  get wantsPause(): boolean {
    return this.#isWaiting || this.isFull || this.isWindowFull
  }

  /** Returns true if a commit couldn't remember more offsets above the oldest record that isn't settled. */
  get isWindowFull(): boolean {
    return this.hasWindow && this.#watermark.span >= maxRememberedOffsets
  }

  /**
   * Returns when a record may be taken, in epoch milliseconds: its append time plus the wait of this topic.
   * An append time in the future comes from another clock, or from a producer that sets times itself. The
   * wait of such a record begins when this member first knows that the record is in the log. So neither this
   * record nor the records after it wait for longer than `waitMs`.
   */
  dueMsOf(offset: number, timestampMs: number, nowMs: number): number {
    if (timestampMs <= nowMs) return timestampMs + this.waitMs
    return this.#end.thereSinceMs(offset, nowMs) + this.waitMs
  }

  /** Returns true if some part of the worker can take no more records. Fetching then pauses. */
  get isFull(): boolean {
    return this.#fullFor.size > 0
  }

  setFull(holder: string, isFull: boolean): void {
    if (isFull) this.#fullFor.add(holder)
    else this.#fullFor.delete(holder)
  }

  /** Notes that a record was fetched. The record may not be due yet. */
  see(offset: number, timestampMs: number): void {
    this.#oldest.see(offset, timestampMs, this.#watermark.position)
  }

  /** Takes a record. Returns true if it is new. The caller then passes it to the worker. */
  take(offset: number): boolean {
    if (this.#watermark.receive(offset) !== 'new') return false
    this.#leftOut?.leaveOutTo(offset + 1)
    this.#lent++
    return true
  }

  /**
   * Takes a record that the feed hasn't reached. Only if the result is `new`, the caller has the record, and
   * must settle it or give it back.
   */
  takeEarly(offset: number, leaderEpoch: number): Receipt | 'beyond' {
    const receipt = this.hasWindow ? this.#watermark.takeEarly(offset) : 'beyond'
    if (receipt === 'new') {
      this.#lent++
      this.#earlyEpochs.note(offset, leaderEpoch)
    }
    return receipt
  }

  /** Notes that the worker has taken a record of a partition that it reads itself. */
  lend(): void {
    this.#lent++
  }

  /** Notes that a record goes somewhere: it is delivered, or kept in another topic until it is. */
  passOn(offset: number): void {
    this.#leftOut?.passOn(offset)
  }

  settle(offset: number): void {
    this.#watermark.settle(offset)
    this.#settledCount++
    this.#returned()
  }

  /** Notes that the worker has returned a record unsettled. The next owner delivers it. */
  giveBack(): void {
    this.#returned()
  }

  /** Returns true if the worker has settled or returned all records that it got. */
  get isIdle(): boolean {
    return this.#lent === 0
  }

  /**
   * Returns the progress to store in a commit. `isEnding` is true if the member stops. The commit has the
   * final mark if `isIdle` is true, and the member stops or has lost the partition.
   */
  standing(isEnding: boolean): Standing {
    const isFinal = (isEnding || this.#isLost) && this.isIdle
    // Without a window, commits don't list the settled offsets above the watermark.
    const settledCount = this.hasWindow ? this.#settledCount : 0
    return { position: this.#watermark.position, settledCount, isFinal }
  }

  /** Returns true if this progress differs from the progress that was committed last. */
  isNews({ position, settledCount, isFinal }: Standing): boolean {
    const known = this.#committed
    return position !== known.position || settledCount !== known.settledCount || isFinal !== known.isFinal
  }

  /**
   * Makes a commit that lists the settled offsets among the next `memory` offsets above the position. With
   * `hasLeftOut`, it also says which settled records went nowhere, if the partition notes it.
   */
  commitOf({ position, isFinal }: Standing, memory = maxRememberedOffsets, hasLeftOut = true): StoredCommit {
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
        ...(hasLeftOut && this.#leftOut !== undefined && { leftOut: this.#leftOut.noted }),
        // The next owner has to know this offset even if this owner leaves with a final mark.
        ...(this.#begunBelow > position && { begunBelow: this.#begunBelow }),
      }),
    }
  }

  /** Returns the epoch of the leader that wrote a settled record. Returns -1 if the epoch isn't known. */
  #epochOf(offset: number): number {
    if (offset < 0) return -1
    return offset < this.#watermark.top
      ? (this.#log?.leaderEpochBefore(offset + 1) ?? -1)
      : Math.max(this.#rememberedEpoch, this.#earlyEpochs.of(offset))
  }

  /** The offset that was committed last; 0 if nothing was committed. */
  get committedOffset(): number {
    return this.#committed.position
  }

  /** The commit of the previous owner, from which the partition was cleared. */
  get found(): StoredCommit | undefined {
    return this.#found
  }

  committed(standing: Standing): void {
    this.#committed = standing
  }

  /**
   * Returns true if a later owner has started the partition. This owner must then no longer commit, because
   * it would set back the offset of the later owner.
   */
  isOvertaken(stored: StoredCommit | undefined): boolean {
    return stored !== undefined && (memoryOf(stored)?.epoch ?? 0) > this.#epoch
  }

  /** Notes the end of the log that a broker reported. The broker was asked at `askedAtMs` (epoch ms). */
  endsAt(offset: number, askedAtMs: number): void {
    this.#end.reported(offset, askedAtMs)
  }

  /**
   * The latest time, in epoch milliseconds, for which this is known: all records that the log had at the time
   * have been taken. 0 while no such time is known. While `isFull` is true, the time doesn't change, because
   * the part of the worker that is full may still have records to take.
   */
  get endSeenMs(): number {
    const isTaking = !this.#isWaiting && !this.isFull
    return this.#end.takenMs(isTaking ? this.#watermark.top : undefined)
  }

  /**
   * The append time of the oldest record that isn't settled, in epoch milliseconds. 0 if every record is
   * settled, or if the time isn't known.
   */
  get oldestUnsettledMs(): number {
    const { endSeenMs } = this
    return this.#oldest.appendedMs(this.#watermark.position, { end: this.#end.offset, endSeenMs })
  }

  /** The number of offsets from the watermark to the end of the log, as far as this member knows the end. */
  get lag(): number {
    return Math.max(0, this.#end.offset - this.#watermark.position)
  }

  #returned(): void {
    this.#lent--
    if (this.#lent === 0) this.#onIdle?.()
  }
}
