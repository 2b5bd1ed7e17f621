import { BenchmarkFailure } from '../support/failure.ts'
import { type LegResult, runLeg } from '../support/leg.ts'
import { measurePairs, type SideName } from '../support/pairs.ts'
import type { GroupReport } from '../support/recorder-process.ts'
import { sumMetric } from '../support/running-worker.ts'
import { say } from '../support/say.ts'
import type { BenchmarkResult, Settings } from '../support/settings.ts'
import { openStage, type ScenePlan, type Stage } from '../support/stage.ts'
import { messagesOfAll, type Stream } from '../support/streams.ts'
import { percent } from '../support/table.ts'
import { resultOf } from './result.ts'
import type { Side, Flood } from './side.ts'

/**
 * What a flood to one destination costs 99 others, and what becomes of it. The flooded one takes 50 requests a
 * second (`rateLimit`) and gets 500 for a minute, the others a steady rate between them. A pair is a run with
 * the flood and a run without. The ladder is shortened to 2 s, 5 s, 10 s and then 10 s again and again, so that
 * what was parked comes while we wait. After the flood the customer raises its limit to the rate of the flood,
 * by an edit of the catalog, or with `keepCap` leaves it, and waits ten times as long. Every message has to come.
 */
export async function runFloodBenchmark(settings: Settings): Promise<BenchmarkResult> {
  const { runs = 3, seconds = 60, rate = 1_000, keepCap = false, profileDir } = settings
  const stage = await openStage({ destinations, profileDir, report: say })
  try {
    const pairs = await measurePairs(runs, async (side, pair) => {
      const measured = await runSide(stage, side, { rate, seconds, keepCap })
      say(`pair ${pair}: ${side} the flood ${describe(measured)}`)
      return measured
    })
    return resultOf(pairs, { rate, seconds, warmupS, capPerS, floodPerS, keepCap })
  } finally {
    await stage.close()
  }
}

const destinations = 100
const warmupS = 15
const capPerS = 50
const floodPerS = 10 * capPerS
const firstRung = '2s'
const ladder = { SLUICE_RETRY_LADDER: `${firstRung},5s,10s`, SLUICE_RETRY_THEN: '10s' }
/** How long the others may take after the traffic; a rung or two of the ladder is in it. */
const spareS = 60

function planWith(perSecond: number): ScenePlan {
  const settings = new Map([[0, { rateLimit: { perSecond } }]])
  return { fleet: { count: destinations, settings }, variables: ladder }
}

async function runSide(
  stage: Stage,
  side: SideName,
  { rate, seconds, keepCap }: { rate: number; seconds: number; keepCap: boolean },
): Promise<Side> {
  const untilS = warmupS + seconds
  const steady: Stream = {
    first: 1,
    count: destinations - 1,
    perS: rate,
    fromS: 0,
    untilS,
    order: 'turn',
  }
  const flood: Stream = { first: 0, count: 1, perS: floodPerS, fromS: warmupS, untilS, order: 'turn' }
  const streams = side === 'with' ? [steady, flood] : [steady]
  const leftPerS = keepCap ? capPerS : floodPerS
  const leg = await runLeg(stage, {
    name: `${side} the flood`,
    plan: planWith(capPerS),
    streams,
    special: [{ destination: 0, answerAfterMs: 0 }],
    awaited: [0],
    fromS: warmupS,
    untilS,
    maxLateMs: 100,
    drainS: spareS + (1.5 * messagesOfAll([flood])) / leftPerS,
    afterTraffic: (scene) => scene.rewriteCatalog(planWith(leftPerS).fleet),
  })
  const [flooded] = leg.report.special
  return {
    latency: leg.report.others.latency,
    perS: leg.report.others.inWindow / seconds,
    othersShare: leg.othersShare,
    flood: side === 'without' || flooded === undefined ? undefined : floodOf(leg, flooded, seconds),
  }
}

function floodOf(
  { expected, metrics, trafficEndUs }: LegResult,
  { distinct, repeats, inWindow, lastArrivalUs }: GroupReport,
  seconds: number,
): Flood {
  const messages = expected.special[0] ?? 0
  const dead = sumMetric(metrics, 'sluice_dead_letters_total')
  if (distinct !== messages || repeats > 0 || dead > 0) {
    throw new BenchmarkFailure(
      `of ${messages} messages of the flood ${distinct} came, ${repeats} again, and ${dead} became dead letters`,
    )
  }
  // A full bucket at the start is one second's worth.
  const mostInWindow = capPerS * (seconds + 1) * 1.05
  if (inWindow > mostInWindow) {
    throw new BenchmarkFailure(
      `the flooded destination got ${inWindow} requests in ${seconds} s: its cap is ${capPerS}/s`,
    )
  }
  const parked = sumMetric(metrics, 'sluice_parked_total', { tier: firstRung })
  if (parked === 0) throw new BenchmarkFailure('nothing of the flood was parked')
  return {
    messages,
    parked,
    hops: sumMetric(metrics, 'sluice_parked_total'),
    perS: inWindow / seconds,
    drainedAfterS: (lastArrivalUs - trafficEndUs) / 1_000_000,
  }
}

function describe({ perS, latency, othersShare, flood }: Side): string {
  const { p50, p99, p999 } = latency
  const times = `${Math.round(perS)}/s, p50 ${p50.toFixed(1)} p99 ${p99.toFixed(1)} p99.9 ${p999.toFixed(1)} ms, ${percent(othersShare)} of the machine used by others`
  if (flood === undefined) return times
  const { parked, messages, drainedAfterS } = flood
  return `${times}, ${parked} of ${messages} parked, all there ${drainedAfterS.toFixed(1)} s after it`
}
