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
 * Measures what a flood of messages to one destination costs 99 others, and when the flood's messages are
 * delivered. The flooded destination accepts 50 requests a second (`rateLimit`) and gets 500 messages a
 * second for a minute. The others share a steady rate. A pair is a run with the flood and a run without.
 * After the flood, an edit of the catalog raises the limit to the rate of the flood. With `keepCap` the limit
 * stays, and the benchmark waits ten times as long for the flood. The benchmark fails if a message doesn't
 * come, or if one takes a step of the retries, because none of them fails.
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
/** The time after the traffic that messages may take, in seconds, in addition to the time for the flood. */
const spareS = 60

function planWith(perSecond: number): ScenePlan {
  const settings = new Map([[0, { rateLimit: { perSecond } }]])
  return { fleet: { count: destinations, settings }, variables: {} }
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
  // The rate limit starts with a full bucket, which allows the requests of one more second. 5 % is
  // tolerance.
  const mostInWindow = capPerS * (seconds + 1) * 1.05
  if (inWindow > mostInWindow) {
    throw new BenchmarkFailure(
      `the flooded destination got ${inWindow} requests in ${seconds} s: its cap is ${capPerS}/s`,
    )
  }
  const joined = sumMetric(metrics, 'sluice_parked_total', { tier: 'waiting' })
  const parked = sumMetric(metrics, 'sluice_parked_total') - joined
  if (parked > 0) throw new BenchmarkFailure(`${parked} messages of the flood took a step of the retries`)
  return {
    messages,
    waiting: messages - inWindow,
    perS: inWindow / seconds,
    drainedAfterS: (lastArrivalUs - trafficEndUs) / 1_000_000,
  }
}

function describe({ perS, latency, othersShare, flood }: Side): string {
  const { p50, p99, p999 } = latency
  const times = `${Math.round(perS)}/s, p50 ${p50.toFixed(1)} p99 ${p99.toFixed(1)} p99.9 ${p999.toFixed(1)} ms, ${percent(othersShare)} of the machine used by others`
  if (flood === undefined) return times
  const { waiting, messages, drainedAfterS } = flood
  return `${times}, ${waiting} of ${messages} waited at its end, all there ${drainedAfterS.toFixed(1)} s after it`
}
