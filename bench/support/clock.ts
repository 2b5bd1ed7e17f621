/**
 * Microseconds of the machine's monotonic clock (CLOCK_MONOTONIC): the same in all its processes, and no one
 * sets it.
 */
export function monotonicUs(): number {
  return Number(process.hrtime.bigint() / 1_000n)
}

/** The same in milliseconds, with their fractions. */
export function monotonicMs(): number {
  return monotonicUs() / 1_000
}
