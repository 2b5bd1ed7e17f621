import { setTimeout as delay } from 'node:timers/promises'
import { monotonicUs } from './clock.ts'
import { BenchmarkFailure } from './failure.ts'
import { watchOthers } from './machine-cpu.ts'
import { faultless, measureInQuiet, type Tried } from './quiet.ts'
import { startProducer } from './producer-process.ts'
import type { Progress, RecorderReport, Span, Special } from './recorder-process.ts'
import { type RunningSender, sumMetric } from './running-worker.ts'
import type { Scene, ScenePlan, Stage } from './stage.ts'
import { destinationOf, messagesOf, messagesOfAll, type Stream } from './streams.ts'
import { faultOf } from './trust.ts'
import { sharedSecret } from './worker-variables.ts'

/** One run: a fresh sender, and traffic by the clock. Times are seconds from the start of the traffic. */
export type Leg = {
  name: string
  /** Default: a worker. */
  sender?: LegSender
  plan: ScenePlan
  streams: readonly Stream[]
  special: readonly Special[]
  /** What counts; what is before is warm-up. */
  fromS: number
  untilS: number
  /** Specials of which all must come before the leg ends, by their place in `special`. */
  awaited?: readonly number[]
  /** How far the producer may be behind its clock, by its p99. */
  maxLateMs: number
  /** How long after the traffic all awaited messages may take. */
  drainS: number
  /** Whether awaited messages that don't come in this time, or come again, are a result and no fault. */
  mayMiss?: boolean
  /** Called when all is produced. */
  afterTraffic?: (scene: Scene) => void
}

/** What delivers in a leg. */
export type LegSender = {
  /** Whether what it sends is signed. */
  signs: boolean
  /** Resolves once it is ready: it has joined its group. */
  start(scene: Scene): Promise<RunningSender>
}

export type LegResult = {
  report: RecorderReport
  /** Messages that were produced. */
  expected: Progress
  /** The last message was produced then, on the clock of `monotonicUs`. */
  trafficEndUs: number
  /** CPU time of the sender in the window. */
  cpuUs: number
  /** The share of the machine that other programs used in the window, 0 to 1: what is measured suffers from it. */
  othersShare: number
  window: Span
  log: string
  /** Empty for a sender that has none. */
  metrics: string
  /** When the sender was stopped, in epoch milliseconds. */
  stoppedAtMs: number
}

const theWorker: LegSender = { signs: true, start: (scene) => scene.startWorker() }

const leadUs = 500_000
const pollMs = 200

/**
 * Runs a leg; again, up to four times in all, where other programs used more than a tenth of the machine. Fails
 * when there was no quiet, when anything is missing or repeated, or when the producer or the servers
 * were too slow to trust the figures.
 */
export async function runLeg(stage: Stage, leg: Leg): Promise<LegResult> {
  const once = (): Promise<Tried<LegResult>> => runOnce(stage, leg)
  return stage.ownsKafka ? measureInQuiet(once) : faultless(await once())
}

async function runOnce(stage: Stage, leg: Leg): Promise<Tried<LegResult>> {
  const { recorder, brokers } = stage
  const scene = await stage.setScene(leg.plan)
  const { sender: starter = theWorker, mayMiss = false, streams, special, fromS } = leg
  const sender = await starter.start(scene)
  const producer = await startProducer({ brokers, topic: scene.topic, streams, fromS })
  try {
    recorder.begin({ messages: messagesOfAll(streams), secret: sharedSecret, special })
    const startUs = monotonicUs() + leadUs
    const window = { fromUs: startUs + fromS * 1_000_000, untilUs: startUs + leg.untilS * 1_000_000 }
    const produced = producer.run(startUs)
    const { cpuUs, othersShare } = await cpuIn(window, sender)
    const result = await produced
    const trafficEndUs = monotonicUs()
    leg.afterTraffic?.(scene)
    const expected = expectedOf(leg)
    await allArrived(stage, leg, expected, sender)
    const report = await recorder.report(window)
    const metrics = (await sender.metrics?.()) ?? ''
    const stoppedAtMs = Date.now()
    const log = await sender.stop()
    const planned = messagesOfAll(streams)
    const asked = { planned, maxLateMs: leg.maxLateMs, mayMiss, signs: starter.signs }
    const problem = faultOf({ produced: result, report, expected, ...asked })
    const fault = problem === undefined ? undefined : `${leg.name}: ${problem}`
    return { report, expected, trafficEndUs, cpuUs, othersShare, window, log, metrics, stoppedAtMs, fault }
  } finally {
    await producer.stop()
    await sender.abandon()
  }
}

async function cpuIn(
  { fromUs, untilUs }: Span,
  sender: RunningSender,
): Promise<{ cpuUs: number; othersShare: number }> {
  await delay((fromUs - monotonicUs()) / 1_000)
  const beforeUs = sender.cpuUs()
  const othersShare = watchOthers()
  await delay((untilUs - monotonicUs()) / 1_000)
  return { cpuUs: sender.cpuUs() - beforeUs, othersShare: othersShare() }
}

function expectedOf({ streams, special }: Leg): Progress {
  const places = new Map(special.map(({ destination }, place) => [destination, place]))
  const expected: Progress = { others: 0, special: special.map(() => 0) }
  for (const stream of streams) {
    for (let index = 0; index < messagesOf(stream); index++) {
      const place = places.get(destinationOf(stream, index))
      if (place === undefined) expected.others++
      else expected.special[place] = (expected.special[place] ?? 0) + 1
    }
  }
  return expected
}

async function allArrived(
  { recorder }: Stage,
  leg: Leg,
  expected: Progress,
  sender: RunningSender,
): Promise<void> {
  const deadlineMs = performance.now() + leg.drainS * 1_000
  for (;;) {
    const missing = missingOf(expected, await recorder.progress(), leg.awaited ?? [])
    if (missing === 0) return
    if (performance.now() > deadlineMs) {
      if (leg.mayMiss === true) return
      const where = stateIn(await sender.metrics?.())
      throw new BenchmarkFailure(
        `${leg.name}: ${missing} messages have not come ${leg.drainS} s after the traffic (${where})`,
      )
    }
    await delay(pollMs)
  }
}

function missingOf(expected: Progress, come: Progress, awaited: readonly number[]): number {
  return awaited.reduce(
    (sum, place) => sum + (expected.special[place] ?? 0) - (come.special[place] ?? 0),
    expected.others - come.others,
  )
}

/** Where a worker has what didn't come. */
function stateIn(metrics: string | undefined): string {
  if (metrics === undefined) return 'it has no metrics'
  const names = {
    parked: 'sluice_parked_total',
    'dead letters': 'sluice_dead_letters_total',
    queued: 'sluice_deliveries_queued',
    'in flight': 'sluice_deliveries_in_flight',
    lag: 'sluice_consumer_lag_records',
  }
  return Object.entries(names)
    .map(([label, name]) => `${label} ${sumMetric(metrics, name)}`)
    .join(', ')
}
