/**
 * Which records of one partition are settled, and so what may be committed.
 *
 * Records settle out of order; the watermark is the first offset that isn't settled. What settled above it
 * is remembered in the commit's metadata (`commit-metadata.ts`), so that the next owner doesn't repeat it.
 *
 * Offsets are numbers: a partition would need 285,000 years at 1,000 records/s to pass 2^53.
 */

/** What `receive` found: `new` is the caller's to settle; the others were met before and are not. */
export type Receipt = 'new' | 'held' | 'settled'

const initialCapacity = 1024

export class Watermark {
  /** Invariant: every offset below is settled, or was never a record that reached us. */
  #base: number
  /** One past the highest offset received or passed over. Invariant: #base <= #top. */
  #top: number
  /**
   * The records from #base on, ascending, in a ring: entry n at (#head + n) & #mask. One that isn't here and
   * is below #top is no record, so that what compaction or markers leave out takes no memory. Invariant: the
   * first one isn't settled, and has the offset #base.
   */
  #offsets: Float64Array
  #settled: Uint8Array
  #mask: number
  #head = 0
  #count = 0
  /** What a former owner settled and wasn't received here yet, ascending, from #nextRemembered on. */
  readonly #remembered: readonly number[]
  #nextRemembered = 0
  #heldCount = 0

  /**
   * @param position the committed offset: the first record that the partition still has to settle
   * @param settledAbove offsets above it that a former owner settled, ascending
   */
  constructor(position: number, settledAbove: Iterable<number> = []) {
    this.#base = position
    this.#top = position
    this.#offsets = new Float64Array(initialCapacity)
    this.#settled = new Uint8Array(initialCapacity)
    this.#mask = initialCapacity - 1
    this.#remembered = [...settledAbove].filter((offset) => offset >= position)
  }

  /** The offset to commit: all before it is settled. Never goes back. */
  get position(): number {
    return this.#base
  }

  /** One past the highest offset received. */
  get top(): number {
    return this.#top
  }

  /**
   * How many offsets lie between the watermark and the highest one received: what the metadata has to hold.
   */
  get span(): number {
    return this.#top - this.#base
  }

  /** Records received and not settled. */
  get heldCount(): number {
    return this.#heldCount
  }

  /**
   * Takes note of a record that was fetched. Offsets between records (compacted away, transaction markers)
   * are passed over. After a rejoin the broker delivers again from the commit: those are `held` or `settled`.
   */
  receive(offset: number): Receipt {
    if (offset < this.#base) return 'settled'
    if (offset < this.#top) return this.#again(offset)
    const wasSettled = this.#forget(offset)
    this.#top = offset + 1
    // Nothing before it is open: there is nothing to remember of one that is done with.
    if (wasSettled && this.#count === 0) this.#base = this.#top
    else this.#append(offset, wasSettled)
    return wasSettled ? 'settled' : 'new'
  }

  /** A held record is done with: its every delivery is delivered, on a retry topic, or a dead letter. */
  settle(offset: number): void {
    if (offset < this.#base) return
    const index = this.#find(offset)
    if (index < 0 || this.#settled[index] === 1) {
      throw new Error(`offset ${offset} was settled without being held`)
    }
    this.#settled[index] = 1
    this.#heldCount--
    if (offset === this.#base) this.#advance()
  }

  /**
   * Passes over everything below `offset`, which the partition will never deliver: a batch's tail of
   * markers. Without it the committed offset of a quiet partition would stay behind them.
   */
  skipTo(offset: number): void {
    if (offset <= this.#top) return
    this.#forget(offset - 1)
    this.#top = offset
    if (this.#count === 0) this.#base = offset
  }

  /** Offsets at or above the watermark that are settled, ascending, at most `limit` offsets far from it. */
  *settledAbove(limit: number): Generator<number> {
    const end = this.#base + limit
    for (let n = 0; n < this.#count; n++) {
      const index = (this.#head + n) & this.#mask
      const offset = this.#offsets[index] ?? end
      if (offset >= end) return
      if (this.#settled[index] === 1) yield offset
    }
    for (let n = this.#nextRemembered; n < this.#remembered.length; n++) {
      const offset = this.#remembered[n] ?? end
      if (offset >= end) return
      yield offset
    }
  }

  /** The last of these; -1 where there is none. */
  lastSettledAbove(limit: number): number {
    const end = this.#base + limit
    const remembered = this.#remembered.findLast((offset) => offset < end) ?? -1
    if (remembered >= this.#top) return remembered
    for (let n = this.#count - 1; n > 0; n--) {
      const index = (this.#head + n) & this.#mask
      const offset = this.#offsets[index] ?? end
      if (offset < end && this.#settled[index] === 1) return offset
    }
    return -1
  }

  /** A record that comes once more, from below the top. */
  #again(offset: number): Receipt {
    const index = this.#find(offset)
    // It was passed over: the broker said that there is none.
    if (index < 0) return 'settled'
    return this.#settled[index] === 1 ? 'settled' : 'held'
  }

  /** Up to this offset what a former owner settled is no news any more; gives whether this one was. */
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

  /** Past all that is settled at the head. */
  #advance(): void {
    while (this.#count > 0 && this.#settled[this.#head] === 1) {
      this.#head = (this.#head + 1) & this.#mask
      this.#count--
    }
    this.#base = this.#count === 0 ? this.#top : (this.#offsets[this.#head] ?? this.#top)
  }

  /** Where a record is in the ring; -1 where there is none of this offset. */
  #find(offset: number): number {
    // Without gaps before it, it is there; with gaps it is nearer to the head.
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
