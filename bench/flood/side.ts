import type { Pair } from '../support/pairs.ts'
import type { Latency } from '../support/recorder-process.ts'

/** `othersShare`: what other programs used of the machine, 0 to 1. */
export type Side = { latency: Latency; perS: number; othersShare: number; flood: Flood | undefined }

/** What became of the flood. `parked` counts messages, `hops` how often they were written to a retry topic. */
export type Flood = {
  messages: number
  parked: number
  hops: number
  /** Requests a second while it lasted. */
  perS: number
  /** From its end until the last message came. */
  drainedAfterS: number
}

export type FloodPair = Pair<Side>
