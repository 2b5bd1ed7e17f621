import { BenchmarkFailure } from '../support/failure.ts'
import { runLeg } from '../support/leg.ts'
import { say } from '../support/say.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { openStage, type Stage } from '../support/stage.ts'
import { median, round } from '../support/statistics.ts'
import type { Stream } from '../support/streams.ts'
import { percent, rowOf } from '../support/table.ts'

/**
 * What a delivery costs the worker with 10,000 destinations, beside what it costs with 10: the same messages at
 * the same rate, by the clock, each to one destination, all evenly and in random order, as customers that know
 * nothing of each other get them. In the warm-up each has its turn, so that none is met for the first time later.
 *
 * Destinations have a path each on 1,000 addresses of the loopback network, which is as many hosts: an address
 * needs a listener, and one process can't have 10,000 beside as many connections. The worker keeps a pool of
 * connections for each URL, so 10,000 hosts would cost it no more. There are no names to look up on either side.
 *
 * At 2,000/s a destination of 10,000 gets a message in 5 s on average. On a third side an idle connection is kept for
 * no more than 4 s (`delivery.poolIdle`): about half of the deliveries open one, and its price is that of connections.
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
  const measured: Record<SideName, Measured[]> = { few: [], many: [], reopened: [] }
  try {
    for (let run = 1; run <= runs; run++) {
      for (const name of run % 2 === 1 ? sideNames : sideNames.toReversed()) {
        const count = name === 'few' ? few : many
        const side = await runSide(stage, { name, count, rate, seconds })
        measured[name].push(side)
        say(`run ${run}: ${name} (${count}) ${describe(side)}`)
      }
    }
  } finally {
    await stage.close()
  }
  return resultOf(measured, { runs, many, rate, seconds, tls })
}

const sideNames = ['few', 'many', 'reopened'] as const
type SideName = (typeof sideNames)[number]

type Measured = { cpuUs: number; perS: number; connectionsEach: number; p99Ms: number; othersShare: number }

const few = 10
const warmupS = 12

async function runSide(
  stage: Stage,
  { name, count, rate, seconds }: { name: SideName; count: number; rate: number; seconds: number },
): Promise<Measured> {
  const untilS = warmupS + seconds
  const all = { first: 0, count, perS: rate }
  const streams: Stream[] = [
    { ...all, fromS: 0, untilS: warmupS, order: 'turn' },
    { ...all, fromS: warmupS, untilS, order: 'random' },
  ]
  const { report, cpuUs, othersShare } = await runLeg(stage, {
    name,
    plan: {
      fleet: { count },
      variables: name === 'reopened' ? { SLUICE_DELIVERY_POOL_IDLE: '4s' } : {},
    },
    streams,
    special: [],
    fromS: warmupS,
    untilS,
    // Times don't count here, only the mean rate.
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
    othersShare,
  }
}

type Setup = { runs: number; many: number; rate: number; seconds: number; tls: boolean }

function resultOf(measured: Record<SideName, Measured[]>, setup: Setup): BenchmarkResult {
  const { runs, many, rate, seconds, tls } = setup
  const sides = {
    few: medianOf(measured.few),
    many: medianOf(measured.many),
    reopened: medianOf(measured.reopened),
  }
  const ratio = sides.many.cpuUs / sides.few.cpuUs
  const reopenedRatio = sides.reopened.cpuUs / sides.few.cpuUs
  const figures = {
    cpu_ratio: round(ratio, 3),
    cpu_ratio_connections_reopened: round(reopenedRatio, 3),
    few: plain(sides.few),
    many: plain(sides.many),
    many_connections_reopened: plain(sides.reopened),
    runs: {
      few: measured.few.map(plain),
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
  const row = (label: string, side: Measured): string =>
    rowOf(label, [
      Math.round(side.perS).toLocaleString('en'),
      side.cpuUs.toFixed(1),
      side.connectionsEach.toFixed(2),
      side.p99Ms.toFixed(1),
      percent(side.othersShare),
    ])
  const table = [
    '',
    `${rate} messages a second for ${seconds} s after ${warmupS} s, each to one destination, ${tls ? 'over TLS 1.3' : 'without TLS'};`,
    `medians of ${runs} runs, Node ${process.version}`,
    '',
    rowOf('destinations', ['deliveries/s', 'CPU µs each', 'connects each', 'p99 ms', 'others use']),
    row(String(few), sides.few),
    row(many.toLocaleString('en'), sides.many),
    row(`${many.toLocaleString('en')}, connections reopened`, sides.reopened),
    '',
    rowOf('many / few', ['', ratio.toFixed(2)]),
    rowOf('connections reopened / few', ['', reopenedRatio.toFixed(2)]),
  ].join('\n')
  return { table, figures }
}

function medianOf(all: readonly Measured[]): Measured {
  const of = (pick: (one: Measured) => number): number => median(all.map(pick))
  return {
    cpuUs: of(({ cpuUs }) => cpuUs),
    perS: of(({ perS }) => perS),
    connectionsEach: of(({ connectionsEach }) => connectionsEach),
    p99Ms: of(({ p99Ms }) => p99Ms),
    othersShare: of(({ othersShare }) => othersShare),
  }
}

function plain({ cpuUs, perS, connectionsEach, p99Ms, othersShare }: Measured): object {
  return {
    cpu_us: round(cpuUs, 1),
    deliveries_per_s: Math.round(perS),
    connections_each: round(connectionsEach, 3),
    p99_ms: round(p99Ms, 2),
    machine_used_by_others: round(othersShare, 3),
  }
}

function describe({ cpuUs, perS, connectionsEach, p99Ms, othersShare }: Measured): string {
  return `${Math.round(perS)}/s, ${cpuUs.toFixed(1)} µs of CPU and ${connectionsEach.toFixed(2)} connections each, p99 ${p99Ms.toFixed(1)} ms, ${percent(othersShare)} of the machine used by others`
}
