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

/** The state of the simulation at one of the moments, which are 15 s apart. */
export type Moment = {
  atS: number
  perSecond: number
  /** The rate without noise. */
  meanPerSecond: number
  /** The number of pods that the autoscaler asks for, including those that still start. */
  pods: number
  lag: number
  /**
   * The largest lag of one partition since the last moment, in seconds. This is the number of its waiting
   * records, divided by its mean rate of new messages.
   */
  partitionBehindS: number
  rebalances: number
}

/**
 * The period in which Prometheus scrapes the pods, and in which the HorizontalPodAutoscaler asks Prometheus.
 */
const periodS = 15
/** The time before the start of the load. In this time, the number of pods adapts to the lowest rate. */
const headStartS = 900
/** The first waits of `retry.ladder`, in seconds. */
const ladderS = [60, 600]

/** Simulates a load on workers that an autoscaler adds and removes. */
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

/**
 * Plans the retries of the messages that fail now. New messages are tried again after the first wait of the
 * ladder, and failing retries after the second wait.
 */
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
