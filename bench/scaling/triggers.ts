import type { Reading } from './autoscaler.ts'
import type { Scraped } from './prometheus.ts'

/** What pods are asked for by. */
export type Trigger = (scraped: Scraped, nowS: number) => Reading[]

/** Over which work is counted: `[2m]` of the chart's queries. */
const windowS = 120

/** The unsettled records alone: what is there to be compared with. */
export function byLag(perPod: number): Trigger {
  return (scraped) => [{ value: scraped.lag, perPod }]
}

/** The chart's `work`: cores in use, and those that working off the lag within `drainS` takes beside. */
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
