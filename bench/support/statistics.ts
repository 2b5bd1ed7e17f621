/**
 * Returns the middle value, or the mean of the two middle values of an even number of values. Returns NaN for
 * no values.
 */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  const lower = sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN
  return (lower + upper) / 2
}

/**
 * Returns the smallest value that at least `share` (0 to 1) of the values don't exceed. This is the exact
 * percentile by nearest rank. `sorted` must be in ascending order. Returns NaN for no values.
 */
export function percentile(sorted: ArrayLike<number>, share: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN
}

export function round(value: number, digits: number): number {
  return Number(value.toFixed(digits))
}
