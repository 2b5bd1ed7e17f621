import type { Pair } from '../support/pairs.ts'
import type { Latency } from '../support/recorder-process.ts'

/**
 * The results of one run. `latency` and `perS` are those of the destinations that aren't flooded.
 * `othersShare`: the share of the machine that other programs used, 0 to 1.
 */
export type Side = { latency: Latency; perS: number; othersShare: number; flood: Flood | undefined }

/**
 * The deliveries of the flood. `waiting`: the messages that still waited for their turn at its end.
 */
export type Flood = {
  messages: number
  waiting: number
  /** Requests a second that the flooded destination got during the flood. */
  perS: number
  /** Seconds from the end of the flood until its last message came. */
  drainedAfterS: number
}

export type FloodPair = Pair<Side>
