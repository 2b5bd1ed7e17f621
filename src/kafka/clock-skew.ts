/** Called with the time by which this process's clock is ahead of a broker's clock, in milliseconds. */
export type OnClockSkew = (nodeId: number, aheadMs: number) => void

/**
 * Returns the smallest possible difference between the clocks of this process and a broker, in milliseconds.
 * Positive: this process is ahead. Negative: it is behind. 0: the clocks may be equal.
 *
 * `appendedMs`: when the broker appended a record, by its own clock. `sentMs` and `answeredMs`: when the
 * request was sent and answered, by the clock of this process.
 */
export function clockAheadMs(appendedMs: number, sentMs: number, answeredMs: number): number {
  if (appendedMs < sentMs) return sentMs - appendedMs
  return Math.min(0, answeredMs - appendedMs)
}
