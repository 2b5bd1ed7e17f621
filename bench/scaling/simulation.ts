import { Autoscaler, type Behavior } from './autoscaler.ts'
import { type Costs, Group } from './group.ts'
import { type Load, meanAt, randomOf } from './load.ts'
import { Scraped } from './prometheus.ts'
import type { Trigger } from './triggers.ts'

export type Scene = {
  partitions: number
  processesPerPod: number
  load: Load
  costs: Costs
  behavior: Behavior
  leastPods: number
  mostPods: number
  trigger: Trigger
  seed: number
}

/** A moment, every 15 s. */
export type Moment = {
  atS: number
  perSecond: number
  /** Without noise. */
  meanPerSecond: number
  /** That are asked for; those that start are among them. */
  pods: number
  lag: number
  /** How far behind the partition was that waited for the longest since the last moment, in seconds of what comes. */
  partitionBehindS: number
  rebalances: number
}

/** How often Prometheus asks the pods, and the HorizontalPodAutoscaler Prometheus. */
const periodS = 15
/** Until the number of pods is that of the load before its rise. */
const headStartS = 900
/** The first waits of `retry.ladder`. */
const ladderS = [60, 600]

/** Plays a load on workers that an autoscaler adds and takes away. */
export function simulate(scene: Scene): Moment[] {
  const { load, costs, processesPerPod, partitions, trigger, behavior, leastPods, mostPods } = scene
  const random = randomOf(scene.seed)
  const group = new Group(costs, processesPerPod, partitions)
  const autoscaler = new Autoscaler({ least: leastPods, most: mostPods, behavior })
  const scraped = new Scraped()
  const retries = new Map<number, number>()
  const moments: Moment[] = []
  let pods = leastPods
  let behindS = 0
  group.scale(-headStartS, pods)
  for (let nowS = -headStartS; nowS < load.untilS; nowS++) {
    const meanPerSecond = meanAt(nowS, load)
    const perSecond = meanPerSecond * (1 + load.noise * (2 * random() - 1))
    const due = retries.get(nowS) ?? 0
    park(retries, { nowS, dead: load.dead, perSecond, due })
    const each = perSecond / partitions
    group.step(
      nowS,
      group.waiting.map(() => each),
      due,
    )
    behindS = Math.max(behindS, (group.mostWaiting * partitions) / meanPerSecond)
    if (nowS % periodS !== 0) continue
    scraped.scrape(nowS, group.told, group.lag)
    const next = autoscaler.decide(nowS, pods, trigger(scraped, nowS))
    if (next !== pods) group.scale(nowS, next)
    pods = next
    const { lag, rebalances } = group
    const partitionBehindS = behindS
    behindS = 0
    if (nowS < 0) continue
    moments.push({ atS: nowS, perSecond, meanPerSecond, pods, lag, partitionBehindS, rebalances })
  }
  return moments
}

/** What fails now is tried again after the ladder's waits: what comes after the first, and what fails again after the second. */
function park(
  retries: Map<number, number>,
  { nowS, dead, perSecond, due }: { nowS: number; dead: Load['dead']; perSecond: number; due: number },
): void {
  if (nowS < dead.fromS || nowS >= dead.untilS) return
  const failing = [perSecond * dead.share, due]
  for (const [step, count] of failing.entries()) {
    const atS = nowS + (ladderS[step] ?? 0)
    retries.set(atS, (retries.get(atS) ?? 0) + count)
  }
}
