import type { GroupReport } from '../support/recorder-process.ts'

/** The figures of the messages to the destinations that answer. */
export type Side = {
  /** The messages that arrived in the window, as a rate a second. */
  perS: number
  /**
   * The p99 of the time from the producer's call to the arrival, for the messages that were produced in the
   * window. `undefined` if one in a hundred of these messages didn't arrive.
   */
  p99Ms: number | undefined
  /** The share of the machine's CPU time that other programs used, from 0 to 1. */
  othersShare: number
}

/** Returns the figures of a run in which `producedPerS` messages a second were produced for `seconds`. */
export function sideOf(
  { inWindow, latency }: Pick<GroupReport, 'inWindow' | 'latency'>,
  { producedPerS, seconds, othersShare }: { producedPerS: number; seconds: number; othersShare: number },
): Side {
  const isWhole = latency.samples > 0.99 * producedPerS * seconds
  return { perS: inWindow / seconds, p99Ms: isWhole ? latency.p99 : undefined, othersShare }
}
