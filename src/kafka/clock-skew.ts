/** Called with how far the clock of this process is ahead of the clock of a broker, in milliseconds. */
export type OnClockSkew = (nodeId: number, aheadMs: number) => void

/**
 * Returns how far the clock of this process is at least ahead of a broker's clock, in milliseconds; negative
 * if it is behind. Returns 0 if the difference is within the time that the request took.
 *
 * `appendedMs`: when the broker appended a record, by its own clock. `sentMs` and `answeredMs`: when the
 * request was sent and answered, by the clock of this process.
 */
export function clockAheadMs(appendedMs: number, sentMs: number, answeredMs: number): number {
  if (appendedMs < sentMs) return sentMs - appendedMs
  return Math.min(0, answeredMs - appendedMs)
}
