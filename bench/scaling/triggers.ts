import type { Reading } from './autoscaler.ts'
import type { Scraped } from './prometheus.ts'

/** A function that returns the readings by which the autoscaler scales. */
export type Trigger = (scraped: Scraped, nowS: number) => Reading[]

/** The window of the rates in seconds: `[2m]` in the chart's queries. */
const windowS = 120

/** Returns a trigger that uses only the unsettled records. It is the baseline of the comparison. */
export function byLag(perPod: number): Trigger {
  return (scraped) => [{ value: scraped.lag, perPod }]
}

/**
 * Returns the trigger `work` of the chart. It counts the cores in use, and the additional cores that are
 * needed to work off the lag within `drainS`.
 */
export function byWork({ coresPerPod, drainS }: { coresPerPod: number; drainS: number }): Trigger {
  return (scraped, nowS) => [{ value: workOf(scraped, nowS, drainS), perPod: coresPerPod }]
}

function workOf(scraped: Scraped, nowS: number, drainS: number): number | undefined {
  const cores = scraped.rate(nowS, windowS, 'cpuSeconds')
  const records = scraped.rate(nowS, windowS, 'records')
  if (cores === undefined || records === undefined) return undefined
  if (records === 0) return scraped.lag === 0 ? cores : undefined
  return cores * (1 + scraped.lag / (records * drainS))
}
