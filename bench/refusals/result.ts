import { BenchmarkFailure } from '../support/failure.ts'
import type { BenchmarkResult } from '../support/settings.ts'
import { median, round } from '../support/statistics.ts'
import { percent, rowOf } from '../support/table.ts'
import type { Round, Side } from './side.ts'
import { floodNames, hostilePerS, type SideName } from './floods.ts'
import type { HostileMessage } from './hostile-messages.ts'
import type { HostileRequest } from './hostile-requests.ts'
import { measureMasks } from './masks.ts'
import type { Cost } from './worst-case.ts'

/** The most expensive requests and messages, the worst first. */
export type WorstCosts = {
  /** The CPU time at a gateway beyond that of a refused empty batch, in milliseconds. */
  readonly requests: readonly Cost<HostileRequest>[]
  /** The CPU time of `enter`, in milliseconds. */
  readonly messages: readonly Cost<HostileMessage>[]
}

type Setup = { rate: number; seconds: number; connections: number; probesPerS: number }

/**
 * Returns the result. `others_p99_ratio` is that of the worst flood. The ratio of a flood is the median of
 * its pairs. The figures contain each pair too.
 */
export function resultOf(rounds: readonly Round[], worst: WorstCosts, setup: Setup): BenchmarkResult {
  const { rate, seconds, connections, probesPerS } = setup
  const bases = rounds.map((sides) => sideIn(sides, 'no flood'))
  const floods = floodNames.map((name) => floodOf(name, rounds, rate))
  const hostile = floods.filter(({ name }) => hostileNames.has(name))
  const flooding = floods.filter(({ name }) => !hostileNames.has(name))
  const figures = {
    worst_2kb_cpu_ms: round(worst.requests[0]?.ms ?? Number.NaN, 2),
    worst_32kb_enter_ms: round(worst.messages[0]?.ms ?? Number.NaN, 2),
    ...measureMasks(),
    healthy_p99_ms: Object.fromEntries(hostile.map(({ name, pairs }) => [name, healthyOf(pairs)])),
    others_p99_ratio: round(Math.max(...flooding.map(({ ratio }) => ratio)), 3),
    worst_requests: worst.requests.map(({ of, ms }) => ({ request: of.name, cpu_ms: round(ms, 2) })),
    worst_messages: worst.messages.map(({ of, ms }) => ({ message: of.name, enter_ms: round(ms, 2) })),
    floods: floods.map(({ name, pairs, ratio, costUs }) => ({
      flood: name,
      p99_ratio: round(ratio, 3),
      refusal_cpu_us: round(costUs, 0),
      body_bytes: pairs[0]?.flooded.flooded?.bodyBytes,
      pairs: pairs.map((pair) => ({
        p99_ratio: round(pair.ratio, 3),
        without: plain(pair.without),
        with: plain(pair.flooded),
      })),
    })),
    flood_per_s: rate,
    flood_connections: connections,
    others_per_s: probesPerS,
    runs: rounds.length,
    seconds,
    node: process.version,
  }
  const table = [
    '',
    'The requests of 2 KB that cost the most, in ms of CPU beyond a refused empty batch:',
    ...worst.requests.map(({ of, ms }) => `  ${ms.toFixed(2)}  ${of.name}`),
    'The messages of 32 KB that cost the most, in ms of CPU to enter them:',
    ...worst.messages.map(({ of, ms }) => `  ${ms.toFixed(2)}  ${of.name}`),
    '',
    `Single calls of one source, ${probesPerS} a second; a flood of ${rate} refused requests a second (${hostilePerS} hostile ones) on ${connections} connections;`,
    `${rounds.length} pairs of ${seconds} s each, medians, Node ${process.version}. CPU is a share of one core`,
    '',
    rowOf('the others', ['p50 ms', 'p99 ms', 'ratio', 'gateway', 'prober', 'flood', 'Kafka', 'others use']),
    ...bases.map((side, index) => rowOf(`${index + 1} no flood`, cellsOf(side, ''))),
    ...floods.flatMap(({ name, pairs, ratio, costUs }) => [
      '',
      `${name}: p99 × ${ratio.toFixed(3)}, ${costUs.toFixed(0)} µs of the gateway's CPU a refusal`,
      ...pairs.map((pair, index) => rowOf(`${index + 1}`, cellsOf(pair.flooded, pair.ratio.toFixed(3)))),
    ]),
  ].join('\n')
  return { table, figures }
}

/** Compares the runs with one flood with those without a flood. */
function floodOf<N extends SideName>(name: N, rounds: readonly Round[], rate: number) {
  const pairs = rounds.map((sides) => {
    const without = sideIn(sides, 'no flood')
    const flooded = sideIn(sides, name)
    return { without, flooded, ratio: flooded.latency.p99 / without.latency.p99 }
  })
  const costs = pairs.map(
    ({ without, flooded }) =>
      ((flooded.cpu.gateway - without.cpu.gateway) / (hostileNames.has(name) ? hostilePerS : rate)) *
      1_000_000,
  )
  return { name, pairs, ratio: median(pairs.map(({ ratio }) => ratio)), costUs: median(costs) }
}

const hostileNames: ReadonlySet<SideName> = new Set(['the worst of 2 KB', 'the worst of 500 KB'])

/** Returns the p99 of the others, in milliseconds: the medians, and the median of the ratios. */
function healthyOf(pairs: readonly { without: Side; flooded: Side; ratio: number }[]): object {
  return {
    without: round(median(pairs.map(({ without }) => without.latency.p99)), 2),
    with: round(median(pairs.map(({ flooded }) => flooded.latency.p99)), 2),
    ratio: round(median(pairs.map(({ ratio }) => ratio)), 3),
  }
}

function sideIn(sides: Round, name: SideName): Side {
  const side = sides.get(name)
  if (side === undefined) throw new BenchmarkFailure(`${name} was not measured`)
  return side
}

function cellsOf({ latency, cpu, othersShare }: Side, ratio: string): string[] {
  const shares = [cpu.gateway, cpu.prober, cpu.flood, cpu.rest, othersShare]
  return [latency.p50.toFixed(2), latency.p99.toFixed(2), ratio, ...shares.map(percent)]
}

function plain({ latency, lateP99Ms, cpu, othersShare, flooded, fault }: Side): object {
  return {
    p50_ms: round(latency.p50, 2),
    p99_ms: round(latency.p99, 2),
    max_ms: round(latency.max, 1),
    late_p99_ms: round(lateP99Ms, 2),
    cpu_of_a_core: {
      gateway: round(cpu.gateway, 3),
      prober: round(cpu.prober, 3),
      flood: round(cpu.flood, 3),
      kafka: round(cpu.rest, 3),
    },
    machine_used_by_others: round(othersShare, 3),
    ...(fault !== undefined && { fault }),
    ...(flooded !== undefined && { refused_per_s: Math.round(flooded.perS), statuses: flooded.statuses }),
  }
}
