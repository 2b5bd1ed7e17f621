import { BenchmarkFailure } from '../support/failure.ts'
import { type LegResult, runLeg } from '../support/leg.ts'
import { measurePairs, type SideName } from '../support/pairs.ts'
import { sumMetric } from '../support/running-worker.ts'
import { percent } from '../support/table.ts'
import { say } from '../support/say.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { openStage, type ScenePlan, type Stage } from '../support/stage.ts'
import type { Stream } from '../support/streams.ts'
import { measureCapacity } from './capacity.ts'
import { resultOf } from './result.ts'
import type { Side, Tried } from './side.ts'

/**
 * Measures what two bad destinations cost the other destinations. A pair is a run with the two and a run
 * without. The order of these two runs alternates from pair to pair. The traffic to the others is the same
 * in both runs, at a fixed rate by the clock. The total rate is half of the worker's capacity on this
 * machine. The benchmark measures this capacity first, unless `rate` gives it.
 *
 * There are 100 destinations, and each has its own host and its own source. Number 0 never answers and gets
 * 10 % of the messages. Number 1 answers after 4.9 s and gets 1 %, which is about the share of a normal
 * destination. The other 98 get 89 % together. Without the two, their 11 % aren't produced, so the worker
 * has more to do in the run with them. Latency is the time from the producer's call to the arrival, by one
 * clock.
 */
export async function runIsolationBenchmark(settings: Settings): Promise<BenchmarkResult> {
  const { runs = 5, seconds = 60, messages = 80_000, tls = false, profileDir } = settings
  const stage = await openStage({ destinations, tls, profileDir, report: say })
  try {
    const capacity =
      settings.rate === undefined
        ? await measureCapacity(stage, { plan, messages, first: badCount })
        : { alone: settings.rate, shared: settings.rate }
    say(`capacity ${Math.round(capacity.shared)}/s, ${Math.round(capacity.alone)}/s when nobody produces`)
    const ratePerS = capacity.shared / 2
    const pairs = await measurePairs(runs, async (side, pair) => {
      const measured = await runSide(stage, side, { ratePerS, seconds })
      say(`pair ${pair}: ${side} the two ${describe(measured)}`)
      return measured
    })
    return resultOf(pairs, { capacity, ratePerS, seconds, warmupS })
  } finally {
    await stage.close()
  }
}

const destinations = 100
const badCount = 2
/**
 * The length of the warm-up, in seconds. By its end, the code of all five processes is compiled, and the
 * breaker has opened. The worker reads the first parked messages again after a minute. This needs other
 * code, which must be compiled too. From then on, the worker reads as many parked messages again as it
 * parks.
 */
const warmupS = 75
const deadShare = 0.1
const slowShare = 0.01
const slowMs = 4_900
/**
 * The time after the traffic in which the last message to a healthy destination must come, in seconds. A
 * parked message comes after a minute, so it still counts, and its latency shows it.
 */
const drainS = 100

const plan: ScenePlan = { fleet: { count: destinations }, variables: {} }

async function runSide(
  stage: Stage,
  side: SideName,
  { ratePerS, seconds }: { ratePerS: number; seconds: number },
): Promise<Side> {
  const time = { fromS: 0, untilS: warmupS + seconds, order: 'turn' } as const
  const healthyPerS = ratePerS * (1 - deadShare - slowShare)
  const healthy: Stream = { first: badCount, count: destinations - badCount, perS: healthyPerS, ...time }
  const bad: Stream[] = [
    { first: 0, count: 1, perS: ratePerS * deadShare, ...time },
    { first: 1, count: 1, perS: ratePerS * slowShare, ...time },
  ]
  const leg = await runLeg(stage, {
    name: `${side} the two`,
    plan,
    streams: side === 'with' ? [healthy, ...bad] : [healthy],
    special: [
      { destination: 0, answerAfterMs: 'never' },
      { destination: 1, answerAfterMs: slowMs },
    ],
    fromS: warmupS,
    untilS: warmupS + seconds,
    maxLateMs: 100,
    drainS,
  })
  const perS = leg.report.others.inWindow / seconds
  if (side === 'without' && perS < healthyPerS * 0.98) {
    throw new BenchmarkFailure(
      `without the two, ${Math.round(perS)} of ${Math.round(healthyPerS)} messages a second came: the machine is too busy`,
    )
  }
  const measured = sideOf(leg, perS)
  if (side === 'without' && measured.parked > 0) {
    throw new BenchmarkFailure(
      `without the two, ${measured.parked} messages were parked, and others used ${percent(leg.othersShare)} of the machine: it is too busy`,
    )
  }
  return measured
}

function sideOf(leg: LegResult, perS: number): Side {
  const { report, expected, metrics, cpuUs, othersShare } = leg
  const triedOf = (place: number): Tried => ({
    messages: expected.special[place] ?? 0,
    tried: report.special[place]?.distinct ?? 0,
    requests: report.special[place]?.requests ?? 0,
  })
  return {
    perS,
    latency: report.others.latency,
    dead: triedOf(0),
    slow: triedOf(1),
    parked: sumMetric(metrics, 'sluice_parked_total'),
    cpuUs,
    othersShare,
  }
}

function describe({ perS, latency, dead, parked, othersShare }: Side): string {
  const { p50, p99, p999 } = latency
  const tries = dead.messages === 0 ? '' : `, dead: ${dead.tried} of ${dead.messages} messages tried`
  return `${Math.round(perS)}/s, p50 ${p50.toFixed(1)} p99 ${p99.toFixed(1)} p99.9 ${p999.toFixed(1)} ms${tries}, ${parked} parked, ${percent(othersShare)} of the machine used by others`
}
