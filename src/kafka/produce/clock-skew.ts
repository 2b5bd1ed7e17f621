/** Called with the time by which this process's clock is ahead of a broker's clock, in milliseconds. */
export type OnClockSkew = (nodeId: number, aheadMs: number) => void

/**
 * Returns by how much the clock of this process is at least ahead of a broker's clock, in milliseconds. The
 * result is negative if the clock of this process is behind. It is 0 if the clocks may be equal.
 *
 * At `appendedMs`, the broker appended a record, by the broker's clock. At `sentMs`, the request was sent,
 * and at `answeredMs`, it was answered. Both are times by the clock of this process.
 */
export function clockAheadMs(appendedMs: number, sentMs: number, answeredMs: number): number {
  if (appendedMs < sentMs) return sentMs - appendedMs
  return Math.min(0, answeredMs - appendedMs)
}
