/** The middle value; of an even number of values the mean of the two in the middle. NaN for none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  const lower = sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN
  return (lower + upper) / 2
}

/** The smallest value that at least `share` (0 to 1) of the ascending `sorted` reach: exact, by nearest rank. NaN for none. */
export function percentile(sorted: ArrayLike<number>, share: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN
}

/** Rounds to `digits` decimals. */
export function round(value: number, digits: number): number {
  return Number(value.toFixed(digits))
}
