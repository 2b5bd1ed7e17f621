import { chartDefaults } from './chart-defaults.ts'
import type { Costs } from './group.ts'
import { anHour } from './load.ts'
import type { Moment, Scene } from './simulation.ts'
import { byLag, byWork } from './triggers.ts'

/**
 * A process of a mid-sized machine. Moved partitions stand still for longer than the real members let them (`npm run bench -- group`): a
 * request that is under way ends first. Pods leave the group when they stop, as the chart has them do where it scales them.
 */
const costs: Costs = { perSecond: 4_000, startS: 40, handoverS: 5, leaveS: 0, idleCores: 0.05 }

/** The default of `kafka.sessionTimeout`: so long the group keeps the partitions of a static member that doesn't leave. */
export const sessionS = 30

/** What the chart did before: 5,000 unsettled records a pod. */
const lagPerPod = 5_000

export type Kind = 'lag alone' | 'work and lag'

/** The chart's defaults on an hour's load whose height takes that share of all that the partitions' processes could. */
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

/** When the load has been at its height for a quarter of an hour, and when it begins to fall. */
const steady = { fromS: anHour.riseAtS + anHour.slopeS + 900, untilS: anHour.fallAtS }

export type Outcome = {
  /** Changes of the number of pods in those 30 minutes. */
  steadyChanges: number
  /** Of the whole run. */
  changes: number
  fewest: number
  most: number
  /** How far behind, in seconds of what comes: at most, and at most from five minutes after the rise on. */
  behindS: number
  laterBehindS: number
  /** The same of the partition that waits for the longest, while pods leave after the fall. */
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
