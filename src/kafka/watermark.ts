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

const unknown = 0
const held = 1
const settled = 2

const initialCapacity = 1024

export class Watermark {
  /** Invariant: every offset below is settled, or was never a record that reached us. */
  #base: number
  /** One past the highest offset received. Invariant: #base <= #top. */
  #top: number
  /** One past the highest offset known at all, from a commit's metadata or by being received. */
  #end: number
  /** State of offset `o` at `o & #mask`, meaningful for #base <= o < #end; everything else is `unknown`. */
  #states: Uint8Array
  #mask: number
  #heldCount = 0

  /**
   * @param position the committed offset: the first record that the partition still has to settle
   * @param settledAbove offsets above it that a former owner settled, ascending
   */
  constructor(position: number, settledAbove: Iterable<number> = []) {
    this.#base = position
    this.#top = position
    this.#end = position
    this.#states = new Uint8Array(initialCapacity)
    this.#mask = initialCapacity - 1
    for (const offset of settledAbove) {
      if (offset < position) continue
      this.#cover(offset)
      this.#states[offset & this.#mask] = settled
    }
  }

  /** The offset to commit: all before it is settled. Never goes back. */
  get position(): number {
    return this.#base
  }

  /** One past the highest offset received. */
  get top(): number {
    return this.#top
  }

  /** How many offsets lie between the watermark and the highest one received: what the metadata has to hold. */
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
    // Nothing is held, so nothing below this offset will ever come: a large gap must not grow the window.
    if (this.#heldCount === 0 && offset >= this.#end && offset !== this.#base) this.#jumpTo(offset)
    this.#cover(offset)
    if (offset >= this.#top) this.#top = offset + 1
    const index = offset & this.#mask
    const state = this.#states[index]
    if (state === unknown) {
      this.#states[index] = held
      this.#heldCount++
      this.#advance()
      return 'new'
    }
    this.#advance()
    return state === held ? 'held' : 'settled'
  }

  /** A held record is done with: its every delivery is delivered, on a retry topic, or a dead letter. */
  settle(offset: number): void {
    if (offset < this.#base) return
    const index = offset & this.#mask
    if (offset >= this.#top || this.#states[index] !== held) {
      throw new Error(`offset ${offset} was settled without being held`)
    }
    this.#states[index] = settled
    this.#heldCount--
    if (offset === this.#base) this.#advance()
  }

  /**
   * Passes over everything below `offset`, which the partition will never deliver: a batch's tail of
   * markers. Without it the committed offset of a quiet partition would stay behind them.
   */
  skipTo(offset: number): void {
    if (offset <= this.#top) return
    this.#cover(offset - 1)
    this.#top = offset
    this.#advance()
  }

  /** Offsets at or above the watermark that are settled, ascending, at most `limit` offsets far from it. */
  *settledAbove(limit: number): Generator<number> {
    const end = Math.min(this.#end, this.#base + limit)
    for (let offset = this.#base; offset < end; offset++) {
      if (this.#states[offset & this.#mask] === settled) yield offset
    }
  }

  #advance(): void {
    while (this.#base < this.#top) {
      const index = this.#base & this.#mask
      if (this.#states[index] === held) return
      this.#states[index] = unknown
      this.#base++
    }
  }

  #jumpTo(offset: number): void {
    this.#states.fill(unknown)
    this.#base = offset
    this.#top = offset
    this.#end = offset
  }

  /** Makes room for the state of `offset`. */
  #cover(offset: number): void {
    if (offset < this.#end) return
    const needed = offset + 1 - this.#base
    if (needed > this.#states.length) this.#grow(needed)
    this.#end = offset + 1
  }

  #grow(needed: number): void {
    let capacity = this.#states.length
    while (capacity < needed) capacity *= 2
    const states = new Uint8Array(capacity)
    for (let offset = this.#base; offset < this.#end; offset++) {
      states[offset & (capacity - 1)] = this.#states[offset & this.#mask] ?? unknown
    }
    this.#states = states
    this.#mask = capacity - 1
  }
}
