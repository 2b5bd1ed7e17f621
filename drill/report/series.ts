import { percentile } from '../../bench/support/statistics.ts'
import type { Drill } from '../run.ts'

/**
 * A value at a time. `atMs` is in milliseconds from the start of the drill. If the value isn't known, it is
 * `undefined`, and the line is interrupted.
 */
export type Point = { atMs: number; value: number | undefined }

export type Series = {
  sent: readonly Point[]
  delivered: readonly Point[]
  lag: readonly Point[]
  p50: readonly Point[]
  p99: readonly Point[]
  awake: readonly Point[]
}

/** The times between the acknowledged request and the arrival at the endpoint, in milliseconds. */
export type Latency = { p50: number; p99: number; max: number }

/** The largest number of points of a line. More points would not be visible. */
const mostPoints = 220
/** An endpoint that always answers at once, over TLS. Its latency is the latency of Sluice. */
export const wellDestination = 'crm'

/** Returns the series of a drill that the report plots. */
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

/** Returns the growth of a count in each bucket, as a rate a second. */
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

/**
 * Returns the latency of each acknowledged message that arrived at a destination, and the time of its
 * arrival. A latency is 0 if the message arrived before the acknowledged request began. An earlier request
 * without an answer had then written the message.
 */
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
