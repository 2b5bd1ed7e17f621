/**
 * Models the work of a worker's one thread in virtual time. Virtual time stands still while code runs. So the
 * time that the code would have taken delays the following work.
 */
export class OneThread {
  /** The total time of all work, in milliseconds. */
  busyMs = 0
  #untilMs = 0

  /** Adds work of `us` microseconds. Returns the time from now until all work is done, in milliseconds. */
  spend(us: number): number {
    const nowMs = performance.now()
    this.#untilMs = Math.max(this.#untilMs, nowMs) + us / 1_000
    this.busyMs += us / 1_000
    return this.#untilMs - nowMs
  }

  /** The time from now until all work is done, in milliseconds. */
  get behindMs(): number {
    return Math.max(0, this.#untilMs - performance.now())
  }
}
