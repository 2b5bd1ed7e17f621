import { percentile } from '../support/statistics.ts'

/**
 * The times between the due time of a record and its arrival, in milliseconds, and the counts of the records.
 */
export type Lateness = {
  p50Ms: number
  p99Ms: number
  maxMs: number
  /** The least lateness. It is negative if a record arrived early. */
  leastMs: number
  early: number
  missing: number
  /** The number of records that came due in a second: the mean, and the largest number. */
  duePerS: { mean: number; max: number }
}

/**
 * Returns the lateness of all records. The index of both lists is the message number, and their times are in
 * epoch milliseconds. A 0 in `arrivedAtMs` is a record that didn't arrive.
 */
export function latenessOf({
  appendedAtMs,
  arrivedAtMs,
  waitMs,
}: {
  appendedAtMs: Float64Array
  arrivedAtMs: Float64Array
  waitMs: number
}): Lateness {
  const all = appendedAtMs.map((atMs, number) => (arrivedAtMs[number] ?? 0) - (atMs + waitMs))
  const sorted = all.filter((_, number) => (arrivedAtMs[number] ?? 0) > 0).sort()
  return {
    p50Ms: percentile(sorted, 0.5),
    p99Ms: percentile(sorted, 0.99),
    maxMs: percentile(sorted, 1),
    leastMs: sorted[0] ?? Number.NaN,
    early: sorted.filter((ms) => ms < 0).length,
    missing: all.length - sorted.length,
    duePerS: ratesOf(appendedAtMs),
  }
}

function ratesOf(atMs: Float64Array): { mean: number; max: number } {
  const sorted = Float64Array.from(atMs).sort()
  const firstMs = sorted[0] ?? Number.NaN
  const lastMs = sorted.at(-1) ?? Number.NaN
  const bySecond = new Map<number, number>()
  for (const ms of sorted) {
    const second = Math.floor((ms - firstMs) / 1_000)
    bySecond.set(second, (bySecond.get(second) ?? 0) + 1)
  }
  return { mean: (sorted.length / (lastMs - firstMs)) * 1_000, max: Math.max(...bySecond.values()) }
}
