// The settled records of one partition. They determine the offset that may be committed.
//
// Records settle out of order. The watermark is the first offset that isn't settled. The commit's metadata
// (`commit-metadata.ts`) lists the settled offsets above the watermark, so that the next owner doesn't repeat
// their records.
//
// A record above `top` may be taken early, before the feed reaches it. Its settling is then remembered in the
// same way.
//
// Offsets are stored as numbers, which are exact up to 2^53. At 1,000 records/s, a partition would reach this
// number in 285,000 years.

import { maxRememberedOffsets } from '../wire/commit-metadata.ts'
import { EarlyOffsets } from './early-offsets.ts'

/**
 * The result of `receive`. The caller has to settle only a `new` record. A `held` record was received before.
 * A `settled` record was settled before, perhaps by a former owner.
 */
export type Receipt = 'new' | 'held' | 'settled'

const initialCapacity = 1024

export class Watermark {
  /** The watermark. Invariant: this member has no unsettled record below it. */
  #base: number
  /** The offset after the highest offset that was received or passed over. Invariant: #base <= #top. */
  #top: number
  /**
   * The offsets of the records from #base on, ascending, in a ring buffer. The record n, counted from 0, is
   * at the index (#head + n) & #mask. If an offset from #base to #top isn't in the buffer, the log has no
   * record at this offset. So offsets that compaction or transaction markers have left without records take
   * no memory. Invariant: the first record isn't settled, and has the offset #base.
   */
  #offsets: Float64Array
  #settled: Uint8Array
  #mask: number
  #head = 0
  #count = 0
  /**
   * The offsets that a former owner settled, ascending. This member hasn't fetched the records of the offsets
   * from the index #nextRemembered on.
   */
  readonly #remembered: readonly number[]
  #nextRemembered = 0
  #heldCount = 0
  /** The records from #top on that were taken already. */
  readonly #early = new EarlyOffsets()

  /**
   * @param position the committed offset: the first record that the partition still has to settle
   * @param settledAbove the offsets above `position` that a former owner settled, ascending
   */
  constructor(position: number, settledAbove: Iterable<number> = []) {
    this.#base = position
    this.#top = position
    this.#offsets = new Float64Array(initialCapacity)
    this.#settled = new Uint8Array(initialCapacity)
    this.#mask = initialCapacity - 1
    this.#remembered = [...settledAbove].filter((offset) => offset >= position)
  }

  /** The offset to commit. All records before this offset are settled. The offset never decreases. */
  get position(): number {
    return this.#base
  }

  /** The offset after the highest offset that was received or passed over. */
  get top(): number {
    return this.#top
  }

  /** The number of offsets from the watermark to `top`, which the commit's metadata has to describe. */
  get span(): number {
    return this.#top - this.#base
  }

  /** The number of records that were received and aren't settled. */
  get heldCount(): number {
    return this.#heldCount
  }

  /**
   * Notes a record that was fetched. Passes over the offsets between the previous record and this record,
   * because compaction or transaction markers have left them without records. After a rejoin, records are
   * fetched again from the committed offset on. Such records are `held` or `settled`.
   */
  receive(offset: number): Receipt {
    if (offset < this.#base) return 'settled'
    if (offset < this.#top) return this.#again(offset)
    this.#passEarly(offset)
    const early = this.#early.remove(offset)
    const wasSettled = this.#forget(offset) || early === 'settled'
    if (early === 'held') this.#heldCount--
    this.#top = offset + 1
    // If no earlier record is unsettled, a settled record needs no entry.
    if (wasSettled && this.#count === 0) this.#base = this.#top
    else this.#append(offset, wasSettled)
    if (wasSettled) return 'settled'
    return early === 'held' ? 'held' : 'new'
  }

  /**
   * Takes a record that the feed hasn't reached yet. Returns `beyond` if no commit could remember that the
   * record is settled. The record then has to wait for the feed.
   */
  takeEarly(offset: number): Receipt | 'beyond' {
    if (offset < this.#base) return 'settled'
    if (offset < this.#top) return this.#again(offset)
    if (offset >= this.#base + maxRememberedOffsets) return 'beyond'
    const state = this.#isRemembered(offset) ? 'settled' : this.#early.stateOf(offset)
    if (state !== 'none') return state
    this.#early.take(offset)
    this.#heldCount++
    return 'new'
  }

  /**
   * Settles a record that was received and isn't settled yet. Each of its deliveries has succeeded, or is on
   * a retry topic or in the dead letters.
   */
  settle(offset: number): void {
    if (offset < this.#base) return
    if (this.#early.settle(offset)) {
      this.#heldCount--
      return
    }
    const index = this.#find(offset)
    if (index < 0 || this.#settled[index] === 1) {
      throw new Error(`offset ${offset} was settled without being held`)
    }
    this.#settled[index] = 1
    this.#heldCount--
    if (offset === this.#base) this.#advance()
  }

  /**
   * Passes over all offsets below `offset`. This member will never get records at these offsets. For example,
   * the markers at the end of a transaction may be there. Without this, the committed offset of a partition
   * without new records would stay below such offsets.
   */
  skipTo(offset: number): void {
    if (offset <= this.#top) return
    this.#passEarly(offset)
    this.#forget(offset - 1)
    this.#top = offset
    if (this.#count === 0) this.#base = offset
  }

  /** Yields the settled offsets that lie less than `limit` above the watermark, ascending. */
  *settledAbove(limit: number): Generator<number> {
    const end = this.#base + limit
    for (let n = 0; n < this.#count; n++) {
      const index = (this.#head + n) & this.#mask
      const offset = this.#offsets[index] ?? end
      if (offset >= end) return
      if (this.#settled[index] === 1) yield offset
    }
    let n = this.#nextRemembered
    for (const early of this.#early.settledBetween(this.#top, end)) {
      for (; (this.#remembered[n] ?? end) < early; n++) yield this.#remembered[n] ?? end
      yield early
    }
    for (; (this.#remembered[n] ?? end) < end; n++) yield this.#remembered[n] ?? end
  }

  /** Returns the last offset that `settledAbove` yields. Returns -1 if it yields none. */
  lastSettledAbove(limit: number): number {
    const end = this.#base + limit
    const remembered = this.#remembered.findLast((offset) => offset < end) ?? -1
    const last = Math.max(remembered, this.#early.lastSettledBetween(this.#top, end))
    if (last >= this.#top) return last
    for (let n = this.#count - 1; n > 0; n--) {
      const index = (this.#head + n) & this.#mask
      const offset = this.#offsets[index] ?? end
      if (offset < end && this.#settled[index] === 1) return offset
    }
    return -1
  }

  /** Handles a record below `top`. The record was received before, or its offset was passed over. */
  #again(offset: number): Receipt {
    const index = this.#find(offset)
    // The offset was passed over, because the log had no record there.
    if (index < 0) return 'settled'
    return this.#settled[index] === 1 ? 'settled' : 'held'
  }

  /** Receives the records before `offset` that were taken early, because the feed passes over them. */
  #passEarly(offset: number): void {
    if (offset === this.#top || this.#early.end <= this.#top) return
    for (const early of this.#early.between(this.#top, offset)) this.receive(early)
  }

  #isRemembered(offset: number): boolean {
    let [low, high] = [this.#nextRemembered, this.#remembered.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#remembered[middle] ?? Infinity) < offset) low = middle + 1
      else high = middle
    }
    return this.#remembered[low] === offset
  }

  /**
   * Forgets the remembered offsets up to and including this offset. Returns true if a former owner settled
   * this very offset.
   */
  #forget(offset: number): boolean {
    let last = -1
    for (let next = this.#remembered[this.#nextRemembered]; next !== undefined && next <= offset;) {
      last = next
      next = this.#remembered[++this.#nextRemembered]
    }
    return last === offset
  }

  #append(offset: number, isSettled: boolean): void {
    if (this.#count === this.#offsets.length) this.#grow()
    const index = (this.#head + this.#count) & this.#mask
    this.#offsets[index] = offset
    this.#settled[index] = isSettled ? 1 : 0
    if (this.#count === 0) this.#base = offset
    this.#count++
    if (!isSettled) this.#heldCount++
  }

  /** Moves the watermark past all settled records at the start of the ring buffer. */
  #advance(): void {
    while (this.#count > 0 && this.#settled[this.#head] === 1) {
      this.#head = (this.#head + 1) & this.#mask
      this.#count--
    }
    this.#base = this.#count === 0 ? this.#top : (this.#offsets[this.#head] ?? this.#top)
  }

  /**
   * Returns the index of a record in the ring buffer. Returns -1 if the record's offset isn't in the buffer.
   */
  #find(offset: number): number {
    // If no offset before the record is missing, the record is at `high`. Otherwise the record is nearer to
    // the head.
    let high = Math.min(offset - this.#base, this.#count - 1)
    for (let low = 0; low <= high;) {
      const index = (this.#head + high) & this.#mask
      if (this.#offsets[index] === offset) return index
      const middle = (low + high) >> 1
      if ((this.#offsets[(this.#head + middle) & this.#mask] ?? 0) < offset) low = middle + 1
      else if (high === middle) high = middle - 1
      else high = middle
    }
    return -1
  }

  #grow(): void {
    const offsets = new Float64Array(2 * this.#offsets.length)
    const settled = new Uint8Array(offsets.length)
    for (let n = 0; n < this.#count; n++) {
      const index = (this.#head + n) & this.#mask
      offsets[n] = this.#offsets[index] ?? 0
      settled[n] = this.#settled[index] ?? 0
    }
    this.#offsets = offsets
    this.#settled = settled
    this.#mask = offsets.length - 1
    this.#head = 0
  }
}
