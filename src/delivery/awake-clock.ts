/**
 * The longest time between two readings that counts, in milliseconds. It is twice the time between two sweeps
 * of the lanes and of the bulkhead.
 */
const longestGapMs = 500

/**
 * A clock that stands still while the process can do nothing: while it is suspended, or while its garbage
 * collector or another long computation keeps it busy. No hook is to blame for such a time, because the
 * process doesn't read answers meanwhile. Read this clock every quarter of a second. If more than
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
