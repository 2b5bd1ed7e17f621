import { maxRememberedOffsets } from '../wire/commit-metadata.ts'

const held = 1
const settled = 2

/** What became of an offset that was taken early. `none`: it wasn't. */
export type EarlyState = 'none' | 'held' | 'settled'

/**
 * The offsets of one partition whose records were taken before the feed reached them. All of them lie within
 * `maxRememberedOffsets` of each other, so a ring has a byte for each.
 */
export class EarlyOffsets {
  /** The state of each offset, at the index `offset % maxRememberedOffsets`. Allocated when it is needed. */
  #states: Uint8Array | undefined
  #end = 0

  /** The offset after the highest offset that was ever taken early. */
  get end(): number {
    return this.#end
  }

  stateOf(offset: number): EarlyState {
    const state = this.#states?.[offset % maxRememberedOffsets]
    if (state === undefined || state === 0 || offset >= this.#end) return 'none'
    return state === held ? 'held' : 'settled'
  }

  take(offset: number): void {
    this.#states ??= new Uint8Array(maxRememberedOffsets)
    this.#states[offset % maxRememberedOffsets] = held
    this.#end = Math.max(this.#end, offset + 1)
  }

  /** Settles a held offset. Returns false if the offset isn't held. */
  settle(offset: number): boolean {
    if (this.#states === undefined || this.stateOf(offset) !== 'held') return false
    this.#states[offset % maxRememberedOffsets] = settled
    return true
  }

  /** Forgets an offset, and returns the state that it had. */
  remove(offset: number): EarlyState {
    const state = this.stateOf(offset)
    if (this.#states !== undefined && state !== 'none') this.#states[offset % maxRememberedOffsets] = 0
    return state
  }

  /** Yields the offsets that were taken early, ascending. No such offset lies below `from`. */
  *between(from: number, to: number): Generator<number> {
    const end = Math.min(to, this.#end)
    for (let offset = from; offset < end; offset++) if (this.stateOf(offset) !== 'none') yield offset
  }

  /** Yields the settled offsets, ascending. No offset that was taken early lies below `from`. */
  *settledBetween(from: number, to: number): Generator<number> {
    const end = Math.min(to, this.#end)
    for (let offset = from; offset < end; offset++) if (this.stateOf(offset) === 'settled') yield offset
  }

  /** Returns the last offset that `settledBetween` yields, or -1. */
  lastSettledBetween(from: number, to: number): number {
    for (let offset = Math.min(to, this.#end) - 1; offset >= from; offset--)
      if (this.stateOf(offset) === 'settled') return offset
    return -1
  }
}
