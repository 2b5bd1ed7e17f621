/**
 * Returns the time of the machine's monotonic clock (CLOCK_MONOTONIC) in microseconds. The clock is the same
 * in all processes of the machine, and is never set.
 */
export function monotonicUs(): number {
  return Number(process.hrtime.bigint() / 1_000n)
}

/** Returns the time of `monotonicUs` in milliseconds, with fractions. */
export function monotonicMs(): number {
  return monotonicUs() / 1_000
}
