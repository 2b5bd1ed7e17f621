import { percentile } from '../support/statistics.ts'

/** From when a record was due to when it came, in milliseconds. */
export type Lateness = {
  p50Ms: number
  p99Ms: number
  maxMs: number
  /** Below 0 when any came early. */
  leastMs: number
  early: number
  missing: number
  /** Records that came due in a second: on average, and in the fullest. */
  duePerS: { mean: number; max: number }
}

/** Both lists are by number of the message, in epoch milliseconds; 0 in `arrivedAtMs` is a record that didn't come. */
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
