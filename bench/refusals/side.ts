import type { Sent } from '../gateway/clients-process.ts'
import type { Flooded } from './flood-process.ts'
import type { SideName } from './floods.ts'

/**
 * The figures of one run. CPU times are shares of one core. They include `leadS`, the time before the
 * latencies are measured.
 */
export type Side = {
  latency: Sent['latencyMs']
  lateP99Ms: number
  cpu: { gateway: number; prober: number; flood: number; rest: number }
  /** The share of the machine's CPU time that other programs used, from 0 to 1. */
  othersShare: number
  flooded: Flooded | undefined
  /** Why the figures of a run can't be used, if other programs disturbed it and there was no time to repeat it. */
  fault: string | undefined
}

export type Round = ReadonlyMap<SideName, Side>
