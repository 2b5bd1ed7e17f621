import { BenchmarkFailure } from '../support/failure.ts'
import { runLeg } from '../support/leg.ts'
import { say } from '../support/say.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { openStage, type Stage } from '../support/stage.ts'
import { sumMetric } from '../support/running-worker.ts'
import { median, round } from '../support/statistics.ts'
import type { Stream } from '../support/streams.ts'
import { percent, rowOf } from '../support/table.ts'

/**
 * Compares what a delivery costs the worker with 10,000 destinations (`many`) and with 10 (`few`). Both sides
 * get the same messages at the same fixed rate. Each message goes to one destination. The messages are spread
 * evenly over the destinations in random order, as if customers acted independently. In the warm-up the
 * destinations take turns, so the worker knows each of them before the measurement starts.
 *
 * Each destination has its own path on one of 1,000 loopback addresses, which count as 1,000 hosts. 10,000
 * addresses would need 10,000 listeners, for which one process can't open enough files. The worker's cost
 * doesn't depend on the number of hosts, because it keeps a pool of connections for each URL. No side looks
 * up names.
 *
 * There are two further sides. On the side `fewOfMany`, the catalog holds the 10,000 destinations, and ten of
 * them get all messages. This side shows the CPU cost and the memory of a large catalog alone.
 *
 * At 2,000 messages a second, each of 10,000 destinations gets a message every 5 s on average. On the side
 * `reopened` an idle connection is closed after 4 s (`delivery.poolIdle`). About half of the deliveries open
 * a connection there, so this side shows the cost of connections.
 */
export async function runDestinationsBenchmark(settings: Settings): Promise<BenchmarkResult> {
  const {
    runs = 3,
    seconds = 30,
    rate = 2_000,
    destinations: many = 10_000,
    tls = false,
    profileDir,
  } = settings
  const stage = await openStage({ destinations: many, tls, profileDir, report: say })
  const measured: Record<SideName, Measured[]> = { few: [], fewOfMany: [], many: [], reopened: [] }
  try {
    for (let run = 1; run <= runs; run++) {
      for (const name of run % 2 === 1 ? sideNames : sideNames.toReversed()) {
        const side = await runSide(stage, { name, many, rate, seconds })
        measured[name].push(side)
        say(`run ${run}: ${name} ${describe(side)}`)
      }
    }
  } finally {
    await stage.close()
  }
  return resultOf(measured, { runs, many, rate, seconds, tls })
}

const sideNames = ['few', 'fewOfMany', 'many', 'reopened'] as const
type SideName = (typeof sideNames)[number]

type Measured = {
  cpuUs: number
  perS: number
  connectionsEach: number
  p99Ms: number
  /** Memory (RSS) of the worker at the end, in MB. */
  residentMb: number
  othersShare: number
}

const few = 10
const warmupS = 12

async function runSide(
  stage: Stage,
  { name, many, rate, seconds }: { name: SideName; many: number; rate: number; seconds: number },
): Promise<Measured> {
  const untilS = warmupS + seconds
  const all = { first: 0, count: name === 'few' || name === 'fewOfMany' ? few : many, perS: rate }
  const streams: Stream[] = [
    { ...all, fromS: 0, untilS: warmupS, order: 'turn' },
    { ...all, fromS: warmupS, untilS, order: 'random' },
  ]
  const { report, cpuUs, othersShare, metrics } = await runLeg(stage, {
    name,
    plan: {
      fleet: { count: name === 'few' ? few : many },
      variables: name === 'reopened' ? { SLUICE_DELIVERY_POOL_IDLE: '4s' } : {},
    },
    streams,
    special: [],
    fromS: warmupS,
    untilS,
    // The producer may be late, because only the mean rate matters for the cost of a delivery.
    maxLateMs: 1_000,
    drainS: 100,
  })
  const { inWindow, latency } = report.others
  if (Math.abs(inWindow / seconds / rate - 1) > 0.02) {
    throw new BenchmarkFailure(
      `${name}: ${Math.round(inWindow / seconds)} of ${rate} messages a second came, and others used ${percent(othersShare)} of the machine: it is too busy`,
    )
  }
  return {
    cpuUs: cpuUs / inWindow,
    perS: inWindow / seconds,
    connectionsEach: report.connectionsInWindow / inWindow,
    p99Ms: latency.p99,
    residentMb: sumMetric(metrics, 'process_resident_memory_bytes') / 1_000_000,
    othersShare,
  }
}

type Setup = { runs: number; many: number; rate: number; seconds: number; tls: boolean }

function resultOf(measured: Record<SideName, Measured[]>, setup: Setup): BenchmarkResult {
  const { runs, many, rate, seconds, tls } = setup
  const sides = {
    few: medianOf(measured.few),
    fewOfMany: medianOf(measured.fewOfMany),
    many: medianOf(measured.many),
    reopened: medianOf(measured.reopened),
  }
  const ratio = sides.many.cpuUs / sides.few.cpuUs
  const reopenedRatio = sides.reopened.cpuUs / sides.few.cpuUs
  const catalogRatio = sides.fewOfMany.cpuUs / sides.few.cpuUs
  const bytesEach = ((sides.fewOfMany.residentMb - sides.few.residentMb) * 1_000_000) / (many - few)
  const figures = {
    cpu_ratio: round(ratio, 3),
    cpu_ratio_connections_reopened: round(reopenedRatio, 3),
    cpu_ratio_few_of_many: round(catalogRatio, 3),
    catalog_bytes_each: Math.round(bytesEach),
    few: plain(sides.few),
    few_of_many: plain(sides.fewOfMany),
    many: plain(sides.many),
    many_connections_reopened: plain(sides.reopened),
    runs: {
      few: measured.few.map(plain),
      few_of_many: measured.fewOfMany.map(plain),
      many: measured.many.map(plain),
      many_connections_reopened: measured.reopened.map(plain),
    },
    destinations: [few, many],
    tls,
    rate_per_s: rate,
    seconds,
    warmup_s: warmupS,
    node: process.version,
  }
  const table = [
    '',
    `${rate} messages a second for ${seconds} s after ${warmupS} s, each to one destination, ${tls ? 'over TLS 1.3' : 'without TLS'};`,
    `medians of ${runs} runs, Node ${process.version}`,
    '',
    rowOf('destinations', ['deliveries/s', 'CPU µs each', 'connects each', 'p99 ms', 'RSS MB', 'others use']),
    row(String(few), sides.few),
    row(`${few} of a catalog of ${many.toLocaleString('en')}`, sides.fewOfMany),
    row(many.toLocaleString('en'), sides.many),
    row(`${many.toLocaleString('en')}, connections reopened`, sides.reopened),
    '',
    rowOf('many / few', ['', ratio.toFixed(2)]),
    rowOf('few of many / few', ['', catalogRatio.toFixed(2)]),
    rowOf('connections reopened / few', ['', reopenedRatio.toFixed(2)]),
    `memory of a destination in the catalog: ${(bytesEach / 1_000).toFixed(1)} KB`,
  ].join('\n')
  return { table, figures }
}

function row(label: string, side: Measured): string {
  return rowOf(label, [
    Math.round(side.perS).toLocaleString('en'),
    side.cpuUs.toFixed(1),
    side.connectionsEach.toFixed(2),
    side.p99Ms.toFixed(1),
    side.residentMb.toFixed(0),
    percent(side.othersShare),
  ])
}

function medianOf(all: readonly Measured[]): Measured {
  const of = (pick: (one: Measured) => number): number => median(all.map(pick))
  return {
    cpuUs: of(({ cpuUs }) => cpuUs),
    perS: of(({ perS }) => perS),
    connectionsEach: of(({ connectionsEach }) => connectionsEach),
    p99Ms: of(({ p99Ms }) => p99Ms),
    residentMb: of(({ residentMb }) => residentMb),
    othersShare: of(({ othersShare }) => othersShare),
  }
}

function plain({ cpuUs, perS, connectionsEach, p99Ms, residentMb, othersShare }: Measured): object {
  return {
    cpu_us: round(cpuUs, 1),
    deliveries_per_s: Math.round(perS),
    connections_each: round(connectionsEach, 3),
    p99_ms: round(p99Ms, 2),
    rss_mb: Math.round(residentMb),
    machine_used_by_others: round(othersShare, 3),
  }
}

function describe({ cpuUs, perS, connectionsEach, p99Ms, residentMb, othersShare }: Measured): string {
  return `${Math.round(perS)}/s, ${cpuUs.toFixed(1)} µs of CPU and ${connectionsEach.toFixed(2)} connections each, p99 ${p99Ms.toFixed(1)} ms, RSS ${residentMb.toFixed(0)} MB, ${percent(othersShare)} of the machine used by others`
}
