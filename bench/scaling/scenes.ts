import { chartDefaults } from './chart-defaults.ts'
import type { Costs } from './group.ts'
import { anHour } from './load.ts'
import type { Moment, Scene } from './simulation.ts'
import { byLag, byWork } from './triggers.ts'

/**
 * The costs on a mid-sized machine. `handoverS` is longer than `npm run bench -- group` measures, because a
 * request that is in flight ends first. Pods leave the group when they stop. The chart configures this for
 * the pods that it scales.
 */
const costs: Costs = { perSecond: 4_000, startS: 40, handoverS: 5, leaveS: 0, idleCores: 0.05 }

/**
 * The default of `kafka.sessionTimeout`. The group keeps the partitions of a static member that doesn't leave
 * for this time.
 */
export const sessionS = 30

/** The number of unsettled records a pod by which an earlier version of the chart scaled. */
const lagPerPod = 5_000

export type Kind = 'lag alone' | 'work and lag'

/**
 * Returns a scene with the chart's defaults and the load `anHour`. `share` is the height of the load, as a
 * share of what one process for each partition could do.
 */
export function sceneOf(
  kind: Kind,
  {
    share,
    seed = 1,
    leaveOnStop = true,
    ...size
  }: {
    share: number
    seed?: number
    leaveOnStop?: boolean
    partitions?: number
    processesPerPod?: number
  },
): Scene {
  const { utilization, drainS, ...defaults } = { ...chartDefaults(), ...size }
  const { partitions, processesPerPod } = defaults
  const atHeight = share * partitions * costs.perSecond
  return {
    ...defaults,
    seed,
    costs: leaveOnStop ? costs : { ...costs, leaveS: sessionS },
    mostPods: Math.ceil(partitions / processesPerPod),
    load: { ...anHour, perSecond: atHeight / anHour.rise },
    trigger:
      kind === 'lag alone'
        ? byLag(lagPerPod)
        : byWork({ coresPerPod: utilization * processesPerPod, drainS }),
  }
}

/**
 * The time in which the number of pods should be steady. It begins when the load has been at its height for a
 * quarter of an hour, and ends when the load begins to fall.
 */
const steady = { fromS: anHour.riseAtS + anHour.slopeS + 900, untilS: anHour.fallAtS }

export type Outcome = {
  /** The number of changes of the number of pods in the steady 30 minutes. */
  steadyChanges: number
  /** The number of changes of the number of pods in the whole run. */
  changes: number
  fewest: number
  most: number
  /**
   * The largest lag of the whole run, in seconds. This is the number of waiting records, divided by the mean
   * rate of new messages.
   */
  behindS: number
  /** The largest lag in seconds, once five minutes have passed since the rise. */
  laterBehindS: number
  /**
   * The largest lag of one partition from the beginning of the fall on, in seconds. In this time, pods leave.
   */
  leavingBehindS: number
}

export function outcomeOf(moments: readonly Moment[]): Outcome {
  const changed = moments.filter((one, index) => index > 0 && one.pods !== moments[index - 1]?.pods)
  const behind = (from: number): number =>
    Math.max(...moments.filter(({ atS }) => atS >= from).map(({ lag, meanPerSecond }) => lag / meanPerSecond))
  return {
    steadyChanges: changed.filter(({ atS }) => atS >= steady.fromS && atS < steady.untilS).length,
    changes: changed.length,
    fewest: Math.min(...moments.map(({ pods }) => pods)),
    most: Math.max(...moments.map(({ pods }) => pods)),
    behindS: behind(0),
    laterBehindS: behind(anHour.riseAtS + anHour.slopeS + 300),
    leavingBehindS: Math.max(
      ...moments.filter(({ atS }) => atS >= anHour.fallAtS).map((one) => one.partitionBehindS),
    ),
  }
}
