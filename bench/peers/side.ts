import type { GroupReport } from '../support/recorder-process.ts'

/** What became of the messages to the destinations that answer. */
export type Side = {
  /** Those that came in the window, a second. */
  perS: number
  /**
   * From the producer's call to the arrival, of those of the window; `undefined` when one in a hundred did
   * not come.
   */
  p99Ms: number | undefined
  /** Of the machine, by other programs: 0 to 1. */
  othersShare: number
}

/** `producedPerS` were produced for them, for so many seconds. */
export function sideOf(
  { inWindow, latency }: Pick<GroupReport, 'inWindow' | 'latency'>,
  { producedPerS, seconds, othersShare }: { producedPerS: number; seconds: number; othersShare: number },
): Side {
  const isWhole = latency.samples > 0.99 * producedPerS * seconds
  return { perS: inWindow / seconds, p99Ms: isWhole ? latency.p99 : undefined, othersShare }
}
