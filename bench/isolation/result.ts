import type { Pair } from '../support/pairs.ts'
import type { BenchmarkResult } from '../support/settings.ts'
import { median, round } from '../support/statistics.ts'
import { percent, rowOf } from '../support/table.ts'
import type { Side } from './side.ts'
import type { Capacity } from './capacity.ts'

type Setup = { capacity: Capacity; ratePerS: number; seconds: number; warmupS: number }

/** Returns the medians over all pairs, and the figures of each pair. */
export function resultOf(pairs: readonly Pair<Side>[], setup: Setup): BenchmarkResult {
  const { capacity, ratePerS, seconds, warmupS } = setup
  const ratios = pairs.map((pair) => ({
    throughput: pair.with.perS / pair.without.perS,
    p99: pair.with.latency.p99 / pair.without.latency.p99,
  }))
  const throughput = median(ratios.map((ratio) => ratio.throughput))
  const p99 = median(ratios.map((ratio) => ratio.p99))
  const dead = pairs.map((pair) => pair.with.dead)
  const figures = {
    healthy_throughput_ratio: round(throughput, 3),
    healthy_p99_ratio: round(p99, 3),
    worst_p99_ratio: round(Math.max(...ratios.map((ratio) => ratio.p99)), 3),
    dead_tried_share: round(Math.min(...dead.map(({ tried, messages }) => tried / messages)), 4),
    dead_requests_per_message: round(
      Math.max(...dead.map(({ requests, messages }) => requests / messages)),
      3,
    ),
    capacity_per_s: Math.round(capacity.shared),
    capacity_alone_per_s: Math.round(capacity.alone),
    rate_per_s: Math.round(ratePerS),
    with: mediansOf(pairs.map((pair) => pair.with)),
    without: mediansOf(pairs.map((pair) => pair.without)),
    pairs: pairs.map((pair, index) => ({
      throughput_ratio: round(ratios[index]?.throughput ?? Number.NaN, 3),
      p99_ratio: round(ratios[index]?.p99 ?? Number.NaN, 3),
      with: plain(pair.with),
      without: plain(pair.without),
    })),
    seconds,
    warmup_s: warmupS,
    node: process.version,
  }
  const rows = pairs.flatMap((pair, index) => [
    rowOf(`pair ${index + 1} without`, cellsOf(pair.without)),
    rowOf(`pair ${index + 1} with`, cellsOf(pair.with)),
  ])
  const table = [
    '',
    `Capacity ${figures.capacity_per_s}/s, produced ${figures.rate_per_s}/s of which 11 % to the two;`,
    `${pairs.length} pairs of ${seconds} s after ${warmupS} s, medians, Node ${process.version}`,
    '',
    rowOf('healthy destinations', [
      'deliveries/s',
      'p50 ms',
      'p99 ms',
      'p99.9 ms',
      'CPU µs each',
      'others use',
    ]),
    ...rows,
    '',
    rowOf('with / without', [throughput.toFixed(3), '', p99.toFixed(3)]),
    '',
    'messages of the dead one that it was sent: ' +
      dead.map(({ tried, messages }) => `${tried} of ${messages}`).join(', '),
  ].join('\n')
  return { table, figures }

  function plain(side: Side): object {
    const { perS, latency, dead: never, slow, parked, othersShare } = side
    return {
      per_s: Math.round(perS),
      ...latencyOf(latency),
      p99_ms_by_second: latency.p99BySecond.map((ms) => round(ms, 1)),
      cpu_us: round(cpuUsEach(side), 1),
      parked,
      machine_used_by_others: round(othersShare, 3),
      ...(never.messages > 0 && { dead: never, slow }),
    }
  }

  function cellsOf(side: Side): string[] {
    const { p50, p99: slowest, p999 } = side.latency
    return [
      Math.round(side.perS).toLocaleString('en'),
      p50.toFixed(1),
      slowest.toFixed(1),
      p999.toFixed(1),
      cpuUsEach(side).toFixed(1),
      percent(side.othersShare),
    ]
  }

  function cpuUsEach({ cpuUs, perS }: Side): number {
    return cpuUs / (perS * seconds)
  }
}

function mediansOf(sides: readonly Side[]): object {
  const of = (pick: (side: Side) => number): number => median(sides.map(pick))
  return {
    per_s: Math.round(of(({ perS }) => perS)),
    ...latencyOf({
      p50: of(({ latency }) => latency.p50),
      p99: of(({ latency }) => latency.p99),
      p999: of(({ latency }) => latency.p999),
    }),
  }
}

function latencyOf({ p50, p99, p999 }: { p50: number; p99: number; p999: number }): object {
  return { p50_ms: round(p50, 2), p99_ms: round(p99, 2), p999_ms: round(p999, 2) }
}
