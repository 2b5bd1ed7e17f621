import type { UnitIndex } from './unit-index.ts'

/** The most records of a unit that were given up, and aren't dead letters yet. */
const mostTaken = 256

/** Takes a record out of its queue. */
type Take = (offset: number, code: number) => void

/** The orders to give up what waits in a unit, and the records that were taken out for them. */
export class Drops {
  /** The codes whose records are given up, with the offset and the time after which they aren't. */
  readonly #orders = new Map<number, { end: number; readonly untilMs: number }>()
  /** The offsets of taken records that are given up, with the latest time at which they were appended. */
  readonly #taken = new Map<number, number>()

  get hasOrders(): boolean {
    return this.#orders.size > 0
  }

  /** Gives up the records of a code before the offset `end` that were appended at `untilMs` or earlier. */
  order(code: number, end: number, untilMs: number): void {
    this.#orders.set(code, { end, untilMs })
  }

  /** Takes out some of the records that are given up. Returns true if there were any. */
  takeSome(index: Pick<UnitIndex, 'firstOf' | 'take'>, mayTake: () => boolean, take: Take): boolean {
    const before = this.#taken.size
    for (const [code, { end, untilMs }] of this.#orders) {
      while (mayTake() && this.#taken.size < mostTaken) {
        const first = index.firstOf(code)
        if (first < 0 || first >= end) {
          this.#orders.delete(code)
          break
        }
        this.#taken.set(index.take(code), untilMs)
        take(first, code)
      }
    }
    return this.#taken.size > before
  }

  /**
   * Returns whether a taken record is given up. `later`: it was taken for an order, and was appended after
   * it. Then those behind it are no longer given up.
   */
  meaningOf(offset: number, code: number, appendedMs: number): 'wanted' | 'given up' | 'later' {
    const untilMs = this.#taken.get(offset)
    if (untilMs === undefined) return 'wanted'
    if (appendedMs <= untilMs) return 'given up'
    const order = this.#orders.get(code)
    if (order !== undefined) order.end = Math.min(order.end, offset)
    return 'later'
  }

  /** Forgets a record that was taken. Returns true if it was given up. */
  forget(offset: number): boolean {
    return this.#taken.delete(offset)
  }
}
