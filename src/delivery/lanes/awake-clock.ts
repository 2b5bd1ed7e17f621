/**
 * Limit on the time between two readings, in milliseconds. A longer time doesn't count. The lanes and the
 * bulkhead read their clocks at least once in half this time.
 */
const longestGapMs = 500

/**
 * A clock that doesn't count the time in which the process can do nothing, because the process is suspended,
 * or because its garbage collector or another long computation keeps it busy. The process reads no answers in
 * this time, so a late answer is not the fault of a hook. Read this clock every quarter of a second. If more
 * than `longestGapMs` has passed since the last reading, none of that time counts.
 */
export class AwakeClock {
  #readMs = performance.now()
  #lostMs = 0

  /** The time in milliseconds. It is above 0 and never falls. */
  get nowMs(): number {
    const readMs = performance.now()
    const gapMs = readMs - this.#readMs
    if (gapMs > longestGapMs) this.#lostMs += gapMs
    this.#readMs = readMs
    return readMs - this.#lostMs
  }
}
