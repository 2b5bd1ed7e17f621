import type { LegResult } from '../support/leg.ts'

export type Side = {
  perS: number
  latency: LegResult['report']['others']['latency']
  /**
   * Messages and requests to the destination that never answers (`dead`), and to the one that answers after
   * 4.9 s (`slow`). All numbers are 0 in a run without the two.
   */
  dead: Tried
  slow: Tried
  parked: number
  cpuUs: number
  /** The share of the machine that other programs used, 0 to 1. */
  othersShare: number
}

/**
 * Numbers for one destination. `messages`: its messages. `tried`: those of them that it got at least once.
 * `requests`: all requests that it got.
 */
export type Tried = { messages: number; tried: number; requests: number }
