/** A moment by both clocks. */
export type Moment = { readonly atMs: number; readonly monotonicMs: number }

export function now(): Moment {
  return { atMs: Date.now(), monotonicMs: performance.now() }
}

/**
 * Measures the time since something was last heard. Two clocks are needed, because each clock may show too
 * short a time. The wall clock does if it is set back. The monotonic clock does if it stands still while a
 * virtual machine is suspended.
 */
export class LastHeard {
  #at: Moment = { atMs: 0, monotonicMs: -Infinity }

  /**
   * The time since something was last heard, in milliseconds. Of the two clocks, the clock that shows the
   * longer time counts. Infinite if nothing was heard yet.
   */
  get agoMs(): number {
    const { atMs, monotonicMs } = this.#at
    return Math.max(Date.now() - atMs, performance.now() - monotonicMs)
  }

  /**
   * Notes that something was heard at a moment. For an answer, give the moment of its question: if the
   * process was suspended since then, the answer may have waited for as long.
   */
  heard(at = now()): void {
    if (at.monotonicMs >= this.#at.monotonicMs) this.#at = at
  }
}
