import { BenchmarkFailure } from '../support/failure.ts'
import { runLeg } from '../support/leg.ts'
import { measurePairs, type SideName } from '../support/pairs.ts'
import { sumMetric } from '../support/running-worker.ts'
import { say } from '../support/say.ts'
import type { Stage } from '../support/stage.ts'
import { median } from '../support/statistics.ts'
import type { Stream } from '../support/streams.ts'

/** The destinations of the benchmark, and those of them that have a queue. */
export const besideDestinations = 10_000
const queued = 1_000
/** How many messages a destination with a queue has too many, and how many it takes in a second. */
const waitingEach = 40
const takenPerS = 1
const warmupS = 40

type BesideSettings = {
  readonly runs: number
  readonly seconds: number
  /** Messages a second to the destinations without queues. */
  readonly rate: number
}

/**
 * Measures what 1,000 destinations with queues cost 9,000 others. With queues, they get more messages at the
 * start than their `rateLimit` allows, so that all of them have messages waiting for the whole time. Without,
 * they have no limit. They get the same number of messages a second afterwards, and deliver as many, on both
 * sides.
 */
export async function measureBeside(
  stage: Stage,
  { runs, seconds, rate }: BesideSettings,
): Promise<Record<string, number>> {
  const pairs = await measurePairs(runs, async (side, pair) => {
    const one = await runSide(stage, side, { seconds, rate })
    say(
      `pair ${pair}: ${side} queues p99 ${one.p99Ms.toFixed(1)} ms, ${one.cpuUs.toFixed(1)} µs of CPU a delivery, ${one.waiting} wait at the end`,
    )
    return one
  })
  const ratioOf = (pick: (side: BesideSide) => number): number =>
    median(pairs.map((pair) => pick(pair.with) / pick(pair.without)))
  return {
    beside_p99_ratio: ratioOf(({ p99Ms }) => p99Ms),
    beside_cpu_ratio: ratioOf(({ cpuUs }) => cpuUs),
    beside_p99_ms: median(pairs.map((pair) => pair.with.p99Ms)),
    beside_waiting: median(pairs.map((pair) => pair.with.waiting)),
  }
}

type BesideSide = { readonly p99Ms: number; readonly cpuUs: number; readonly waiting: number }

async function runSide(
  stage: Stage,
  side: SideName,
  { seconds, rate }: Pick<BesideSettings, 'seconds' | 'rate'>,
): Promise<BesideSide> {
  const untilS = warmupS + seconds
  const ofQueued = { first: 0, count: queued, order: 'turn' } as const
  const others = { first: queued, count: besideDestinations - queued, perS: rate }
  const burstS = warmupS / 2
  const burst: Stream = { ...ofQueued, perS: (queued * waitingEach) / burstS, fromS: 0, untilS: burstS }
  const streams: readonly Stream[] = [
    { ...others, fromS: 0, untilS: warmupS, order: 'turn' },
    { ...others, fromS: warmupS, untilS, order: 'random' },
    ...(side === 'with' ? [burst] : []),
    { ...ofQueued, perS: queued * takenPerS, fromS: 0, untilS },
  ]
  const limited = { rateLimit: { perSecond: takenPerS } }
  const numbers = side === 'with' ? Array.from({ length: queued }, (_, number) => number) : []
  const leg = await runLeg(stage, {
    name: `${side} queues`,
    plan: {
      fleet: {
        count: besideDestinations,
        settings: new Map(numbers.map((number) => [number, limited])),
      },
      variables: {},
    },
    streams,
    special: Array.from({ length: queued }, (_, destination) => ({ destination, answerAfterMs: 0 })),
    fromS: warmupS,
    untilS,
    maxLateMs: 200,
    drainS: 60,
  })
  const { others: told, special } = leg.report
  const waiting = sumMetric(leg.metrics, 'sluice_waiting_messages')
  if (side === 'with' && waiting < queued)
    throw new BenchmarkFailure(`only ${waiting} messages wait at the end: the queues were empty`)
  const deliveries = special.reduce((sum, { inWindow }) => sum + inWindow, told.inWindow)
  return { p99Ms: told.latency.p99, cpuUs: leg.cpuUs / deliveries, waiting }
}
