/**
 * Measures the time since something was last heard. Two clocks are needed, because each clock may show too
 * short a time. The wall clock does if it is set back. The monotonic clock does if it stands still while a
 * virtual machine is suspended.
 */
export class LastHeard {
  #atMs = 0
  #monotonicMs = -Infinity

  /**
   * The time since something was last heard, in milliseconds. Of the two clocks, the clock that shows the
   * longer time counts. Infinite if nothing was heard yet.
   */
  get agoMs(): number {
    return Math.max(Date.now() - this.#atMs, performance.now() - this.#monotonicMs)
  }

  heard(): void {
    this.#atMs = Date.now()
    this.#monotonicMs = performance.now()
  }
}
