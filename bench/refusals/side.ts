import type { Sent } from '../gateway/clients-process.ts'
import type { Flooded } from './flood-process.ts'
import type { SideName } from './floods.ts'

/** Of one run. CPU is a share of one core; what comes before the measured time, `leadS`, counts in it too. */
export type Side = {
  latency: Sent['latencyMs']
  lateP99Ms: number
  cpu: { gateway: number; prober: number; flood: number; rest: number }
  /** Of the machine. */
  othersShare: number
  flooded: Flooded | undefined
}

export type Round = ReadonlyMap<SideName, Side>
