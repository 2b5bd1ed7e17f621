/**
 * The longest time between two readings that counts, in milliseconds. It is twice the time between two sweeps
 * of the lanes and of the bulkhead.
 */
const longestGapMs = 500

/**
 * A clock that stands still while the process can do nothing: while it is suspended, or while its garbage
 * collector or another long computation keeps it busy. The process reads no answers while it stands still, so
 * a late answer is not the fault of a hook. Read this clock every quarter of a second. If more than
 * `longestGapMs` has passed since the last reading, none of that time counts.
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
