import type { LegResult } from '../support/leg.ts'

export type Side = {
  perS: number
  latency: LegResult['report']['others']['latency']
  /** Of the one that never answers, and of the one that answers after 4.9 s; without traffic where they have none. */
  dead: Tried
  slow: Tried
  parked: number
  cpuUs: number
  /** Of the machine, by other programs: 0 to 1. */
  othersShare: number
}

/** How many messages there were for a destination, how many of them it was sent at least once, and by how many requests. */
export type Tried = { messages: number; tried: number; requests: number }
