import type { BenchmarkResult } from '../support/settings.ts'
import { median, round } from '../support/statistics.ts'
import { percent, rowOf } from '../support/table.ts'
import type { FloodPair, Side } from './side.ts'

type Setup = {
  rate: number
  seconds: number
  warmupS: number
  capPerS: number
  floodPerS: number
  keepCap: boolean
}

/** Returns the medians over all pairs, and the figures of each pair. */
export function resultOf(pairs: readonly FloodPair[], setup: Setup): BenchmarkResult {
  const { rate, seconds, warmupS, capPerS, floodPerS, keepCap } = setup
  const ratios = pairs.map((pair) => pair.with.latency.p99 / pair.without.latency.p99)
  const p99Ratio = median(ratios)
  const floods = pairs.flatMap((pair) => (pair.with.flood === undefined ? [] : [pair.with.flood]))
  const drainedAfterS = Math.max(...floods.map((flood) => flood.drainedAfterS))
  const figures = {
    others_p99_ratio: round(p99Ratio, 3),
    flood_messages: median(floods.map(({ messages }) => messages)),
    flood_waiting: median(floods.map(({ waiting }) => waiting)),
    flood_delivered_per_s: round(median(floods.map(({ perS }) => perS)), 1),
    drained_after_s: round(drainedAfterS, 1),
    pairs: pairs.map((pair, index) => ({
      p99_ratio: round(ratios[index] ?? Number.NaN, 3),
      without: plain(pair.without),
      with: { ...plain(pair.with), ...pair.with.flood },
    })),
    rate_per_s: rate,
    cap_per_s: capPerS,
    flood_per_s: floodPerS,
    keeps_cap: keepCap,
    seconds,
    warmup_s: warmupS,
    node: process.version,
  }
  const table = [
    '',
    `99 destinations with ${rate}/s between them; one that takes ${capPerS}/s and gets ${floodPerS}/s for ${seconds} s;`,
    `${pairs.length} pairs, medians, Node ${process.version}`,
    '',
    rowOf('the others', ['deliveries/s', 'p50 ms', 'p99 ms', 'p99.9 ms', 'others use']),
    ...pairs.flatMap((pair, index) => [
      rowOf(`pair ${index + 1} without`, cellsOf(pair.without)),
      rowOf(`pair ${index + 1} with`, cellsOf(pair.with)),
    ]),
    '',
    rowOf('with / without', ['', '', p99Ratio.toFixed(3)]),
    '',
    ...floods.map(
      ({ messages, waiting, perS, drainedAfterS: afterS }) =>
        `flood: ${messages} messages, of which ${waiting} waited at its end, ${perS.toFixed(1)}/s delivered ` +
        `while it lasted, all delivered ${afterS.toFixed(1)} s after it`,
    ),
    keepCap ? 'its cap stayed as it was' : `its cap was raised to ${floodPerS}/s at the end of the flood`,
  ].join('\n')
  return { table, figures }
}

function cellsOf({ perS, othersShare, latency: { p50, p99, p999 } }: Side): string[] {
  return [
    Math.round(perS).toLocaleString('en'),
    p50.toFixed(1),
    p99.toFixed(1),
    p999.toFixed(1),
    percent(othersShare),
  ]
}

function plain({ latency: { p50, p99, p999, p99BySecond }, othersShare }: Side): object {
  return {
    p50_ms: round(p50, 2),
    p99_ms: round(p99, 2),
    p999_ms: round(p999, 2),
    p99_ms_by_second: p99BySecond.map((ms) => round(ms, 1)),
    machine_used_by_others: round(othersShare, 3),
  }
}
