import { messageBytes } from '../support/messages.ts'
import type { Pair } from '../support/pairs.ts'
import type { BenchmarkResult } from '../support/settings.ts'
import { median, round } from '../support/statistics.ts'
import { percent, rowOf } from '../support/table.ts'
import { type Measurement, medianOf } from '../support/turns.ts'
import { partitions } from '../support/worker-variables.ts'
import { type IsolatedName, isolatedNames, labels, type PeerName, peerNames } from './names.ts'
import type { ProgramName } from './programs.ts'
import type { Side } from './side.ts'

/** The measurements of all runs of both parts. */
export type Measured = {
  throughput: ReadonlyMap<PeerName, readonly Measurement[]>
  isolation: readonly Pair<Record<IsolatedName, Side>>[]
}

export type Setup = {
  runs: number
  messages: number
  inFlight: number
  ratePerS: number
  deadShare: number
  seconds: number
  warmupS: number
  versions: Readonly<Record<ProgramName, string>>
}

/** Returns the medians of all runs and of all pairs. The figures contain each pair too. */
export function resultOf(measured: Measured, setup: Setup): BenchmarkResult {
  return { table: tableOf(measured, setup), figures: figuresOf(measured, setup) }
}

/** The share of the healthy traffic that is left, and its p99. A p99 is `undefined` if most runs had none. */
type Isolation = { kept: number; p99Ms: Pair<number | undefined> }

function isolationOf(pairs: readonly Pair<Side>[]): Isolation {
  return {
    kept: median(pairs.map((pair) => pair.with.perS / pair.without.perS)),
    p99Ms: {
      without: p99Of(pairs.map(({ without }) => without)),
      with: p99Of(pairs.map((pair) => pair.with)),
    },
  }
}

/** Returns the median of the p99. A run without a p99 counts as slower than every run with one. */
function p99Of(sides: readonly Side[]): number | undefined {
  const p99Ms = median(sides.map((side) => side.p99Ms ?? Number.POSITIVE_INFINITY))
  return Number.isFinite(p99Ms) ? p99Ms : undefined
}

function pairsOf(name: PeerName, { isolation }: Measured): Pair<Side>[] | undefined {
  const isolated = isolatedNames.find((one) => one === name)
  if (isolated === undefined) return undefined
  return isolation.map((pair) => ({ without: pair.without[isolated], with: pair.with[isolated] }))
}

function throughputOf(name: PeerName, { throughput }: Measured): Measurement {
  return medianOf(throughput.get(name) ?? [])
}

function tableOf(measured: Measured, setup: Setup): string {
  const { runs, messages, inFlight, ratePerS, deadShare, seconds, warmupS, versions } = setup
  const dead = percent(deadShare)
  return [
    '',
    `${messages.toLocaleString('en')} messages of ${messageBytes} bytes, ${partitions} partitions, ${inFlight} in flight, by turns;`,
    `then ${ratePerS}/s by the clock for ${seconds} s after ${warmupS} s, without and with ${dead} of it to a destination that`,
    `never answers; medians of ${runs} runs. Node ${process.version}, franz-go ${versions['franz-go']}, parallel-consumer ${versions['parallel-consumer']}`,
    '',
    rowOf('', ['', '', '', 'healthy kept', 'p99 ms', 'p99 ms']),
    rowOf('', ['deliveries/s', 'CPU µs each', 'second half', `${dead} dead`, 'without', `${dead} dead`]),
    ...peerNames.map((name) => rowOf(labels[name], cellsOf(name, measured))),
    '',
    rowOf('worker / floor that signs', ratioCells('signing', measured)),
    rowOf('worker / bare floor', ratioCells('floor', measured)),
    rowOf('worker / franz-go', ratioCells('franz-go', measured)),
    rowOf('worker / parallel-consumer', ratioCells('parallel-consumer', measured)),
    '',
    'The floor that signs writes canonical JSON as the worker does. Only the worker judges, logs and counts. A p99 is none where one healthy message in a hundred did not come.',
  ].join('\n')
}

function cellsOf(name: PeerName, measured: Measured): string[] {
  const { deliveriesPerS, cpuUs, warmCpuUs } = throughputOf(name, measured)
  const cells = [Math.round(deliveriesPerS).toLocaleString('en'), cpuUs.toFixed(1), warmCpuUs.toFixed(1)]
  const pairs = pairsOf(name, measured)
  if (pairs === undefined) return [...cells, '-', '-', '-']
  const { kept, p99Ms } = isolationOf(pairs)
  return [...cells, `${(kept * 100).toFixed(1)} %`, msCell(p99Ms.without), msCell(p99Ms.with)]
}

function msCell(ms: number | undefined): string {
  return ms === undefined ? 'none' : ms.toFixed(1)
}

function ratioCells(name: PeerName, measured: Measured): string[] {
  const { all, warm } = ratiosTo(name, measured)
  return ['', all.toFixed(2), warm.toFixed(2)]
}

/** Returns the worker's CPU time for a delivery, divided by that of another program. */
function ratiosTo(name: PeerName, measured: Measured): { all: number; warm: number } {
  const worker = throughputOf('worker', measured)
  const other = throughputOf(name, measured)
  return { all: worker.cpuUs / other.cpuUs, warm: worker.warmCpuUs / other.warmCpuUs }
}

function figuresOf(measured: Measured, setup: Setup): object {
  const { runs, messages, inFlight, ratePerS, deadShare, seconds, warmupS, versions } = setup
  return {
    peers: Object.fromEntries(peerNames.map((name) => [name, figuresOfPeer(name, measured)])),
    floor_ratio: round(ratiosTo('signing', measured).all, 2),
    floor_warm_ratio: round(ratiosTo('signing', measured).warm, 2),
    bare_floor_ratio: round(ratiosTo('floor', measured).all, 2),
    bare_floor_warm_ratio: round(ratiosTo('floor', measured).warm, 2),
    franz_go_ratio: round(ratiosTo('franz-go', measured).all, 2),
    franz_go_warm_ratio: round(ratiosTo('franz-go', measured).warm, 2),
    parallel_consumer_ratio: round(ratiosTo('parallel-consumer', measured).all, 2),
    parallel_consumer_warm_ratio: round(ratiosTo('parallel-consumer', measured).warm, 2),
    runs,
    messages,
    message_bytes: messageBytes,
    partitions,
    in_flight: inFlight,
    rate_per_s: ratePerS,
    dead_share: deadShare,
    seconds,
    warmup_s: warmupS,
    versions,
    node: process.version,
  }
}

function figuresOfPeer(name: PeerName, measured: Measured): object {
  const { deliveriesPerS, cpuUs, warmDeliveriesPerS, warmCpuUs } = throughputOf(name, measured)
  const pairs = pairsOf(name, measured)
  return {
    deliveries_per_s: Math.round(deliveriesPerS),
    cpu_us: round(cpuUs, 1),
    warm_deliveries_per_s: Math.round(warmDeliveriesPerS),
    warm_cpu_us: round(warmCpuUs, 1),
    ...(pairs !== undefined && isolationFigures(pairs)),
  }
}

function isolationFigures(pairs: readonly Pair<Side>[]): object {
  const { kept, p99Ms } = isolationOf(pairs)
  return {
    healthy_kept: round(kept, 4),
    p99_ms_without: msFigure(p99Ms.without),
    p99_ms_with: msFigure(p99Ms.with),
    pairs: pairs.map((pair) => ({ without: plain(pair.without), with: plain(pair.with) })),
  }
}

function plain({ perS, p99Ms, othersShare }: Side): object {
  return { per_s: round(perS, 1), p99_ms: msFigure(p99Ms), machine_used_by_others: round(othersShare, 3) }
}

function msFigure(ms: number | undefined): number | null {
  return ms === undefined ? null : round(ms, 2)
}
