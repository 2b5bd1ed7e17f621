import { percentile } from '../../bench/support/statistics.ts'
import type { Drill } from '../run.ts'

/** A value at a time, in milliseconds from the start of the drill; `undefined`: nothing is known of it, and a line is interrupted. */
export type Point = { atMs: number; value: number | undefined }

export type Series = {
  sent: readonly Point[]
  delivered: readonly Point[]
  lag: readonly Point[]
  p50: readonly Point[]
  p99: readonly Point[]
  awake: readonly Point[]
}

/** Of milliseconds, from the request that was acknowledged to its arrival. */
export type Latency = { p50: number; p99: number; max: number }

/** So many points a line: more would not be seen. */
const mostPoints = 220
/** The endpoint that is always well, over TLS: its latency is Sluice's. */
export const wellDestination = 'crm'

/** What is plotted of a drill. */
export function seriesOf(drill: Drill): Series {
  const { startedMs, settledMs, samples, lags } = drill
  const bucketMs = Math.max(1_000, Math.ceil((settledMs - startedMs) / mostPoints / 1_000) * 1_000)
  const latencies = latenciesOf(drill, wellDestination)
  const buckets = new Map<number, number[]>()
  for (const { arrivedMs, ms } of latencies) {
    const at = Math.floor((arrivedMs - startedMs) / bucketMs)
    const inside = buckets.get(at) ?? []
    buckets.set(at, inside)
    inside.push(ms)
  }
  const quantile = (share: number): Point[] =>
    Array.from({ length: Math.ceil((settledMs - startedMs) / bucketMs) }, (_, at) => {
      const inside = buckets.get(at)?.toSorted((a, b) => a - b)
      return {
        atMs: (at + 0.5) * bucketMs,
        value: inside === undefined ? undefined : percentile(inside, share),
      }
    })
  const rate = (pick: (sample: Drill['samples'][number]) => number): Point[] =>
    ratesOf(
      samples.map((sample) => ({ atMs: sample.atMs - startedMs, count: pick(sample) })),
      bucketMs,
    )
  return {
    sent: rate(({ sent }) => sent),
    delivered: rate(({ delivered }) => delivered),
    lag: lags.map(({ atMs, records }) => ({ atMs: atMs - startedMs, value: records })),
    p50: quantile(0.5),
    p99: quantile(0.99),
    awake: samples.map(({ atMs, awake }) => ({ atMs: atMs - startedMs, value: awake })),
  }
}

/** What grew in each bucket, a second. */
function ratesOf(counts: readonly { atMs: number; count: number }[], bucketMs: number): Point[] {
  const points: Point[] = []
  let last = counts[0]
  for (const now of counts) {
    if (last === undefined || now.atMs - last.atMs < bucketMs - 500) continue
    points.push({
      atMs: (now.atMs + last.atMs) / 2,
      value: ((now.count - last.count) / (now.atMs - last.atMs)) * 1_000,
    })
    last = now
  }
  return points
}

/** Of each message that came to a destination, by when. What was written by a request that got no answer may come before the one that did. */
function latenciesOf(
  { evidence: { acknowledged, deliveries } }: Drill,
  destination: string,
): { arrivedMs: number; ms: number }[] {
  return acknowledged.flatMap(({ id, sentMs }) => {
    const first = deliveries.get(`${destination}/${id}`)?.[0]
    return first === undefined
      ? []
      : [{ arrivedMs: first.arrivedMs, ms: Math.max(0, first.arrivedMs - sentMs) }]
  })
}

export function latencyOf(drill: Drill, destination: string): Latency {
  const sorted = latenciesOf(drill, destination)
    .map(({ ms }) => ms)
    .sort((a, b) => a - b)
  return { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99), max: sorted.at(-1) ?? Number.NaN }
}
