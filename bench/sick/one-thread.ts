/**
 * What a worker's one thread has to do, in virtual time: that stands still while code runs, so what it would have cost makes what comes
 * after it late.
 */
export class OneThread {
  /** All that it has done, in milliseconds. */
  busyMs = 0
  #untilMs = 0

  /** Gives how long it is, from now, until the thread has done what it was given before and this. Milliseconds. */
  spend(us: number): number {
    const nowMs = performance.now()
    this.#untilMs = Math.max(this.#untilMs, nowMs) + us / 1_000
    this.busyMs += us / 1_000
    return this.#untilMs - nowMs
  }

  /** How long it is until it has done all that it was given, in milliseconds. */
  get behindMs(): number {
    return Math.max(0, this.#untilMs - performance.now())
  }
}
