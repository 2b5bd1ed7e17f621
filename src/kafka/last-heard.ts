/**
 * The time when something was last heard. It is kept by two clocks. A wall clock that is set back makes this
 * time seem later than it is, and the monotonic clock may stand still while a virtual machine is suspended.
 */
export class LastHeard {
  #atMs = 0
  #monotonicMs = -Infinity

  /**
   * The time since then, in milliseconds, by the clock that shows more. Infinite if nothing was heard yet.
   */
  get agoMs(): number {
    return Math.max(Date.now() - this.#atMs, performance.now() - this.#monotonicMs)
  }

  heard(): void {
    this.#atMs = Date.now()
    this.#monotonicMs = performance.now()
  }
}
