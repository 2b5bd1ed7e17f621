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

/**
 * The plan of one run with a new sender and traffic by the clock. Times are in seconds from the start of the
 * traffic.
 */
export type Leg = {
  name: string
  /** The sender. Default: a worker. */
  sender?: LegSender
  plan: ScenePlan
  streams: readonly Stream[]
  special: readonly Special[]
  /** The start of the window that is measured. The time before it is the warm-up. */
  fromS: number
  /** The end of the window that is measured. */
  untilS: number
  /**
   * The special destinations whose messages must all arrive before the leg ends, by their place in `special`.
   */
  awaited?: readonly number[]
  /** The largest p99 of the producer's lateness. */
  maxLateMs: number
  /** How long after the end of the traffic the awaited messages may arrive. */
  drainS: number
  /**
   * If true, awaited messages that are missing after `drainS`, or that are repeated, are a result and no
   * fault.
   */
  mayMiss?: boolean
  /** Called when the window begins. What it does has to be over before the leg ends. */
  atWindow?: (scene: Scene) => Promise<void>
  /** Called when all messages are produced. */
  afterTraffic?: (scene: Scene) => void
}

export type LegSender = {
  /** True if the sender signs its requests. */
  signs: boolean
  /** Starts the sender. Resolves when it has joined its group, and so is ready. */
  start(scene: Scene): Promise<RunningSender>
}

export type LegResult = {
  report: RecorderReport
  /** The numbers of produced messages, for the special destinations and for the others. */
  expected: Progress
  /**
   * The time after the window at which all messages were produced and answered, on the clock of
   * `monotonicUs`.
   */
  trafficEndUs: number
  /** The CPU time of the sender in the window. */
  cpuUs: number
  /**
   * The share of the machine's CPU time that other programs used in the window, from 0 to 1. It distorts the
   * results.
   */
  othersShare: number
  window: Span
  log: string
  /** The text of the sender's metrics. Empty for a sender without metrics. */
  metrics: string
  /** When the sender was stopped, in epoch milliseconds. */
  stoppedAtMs: number
}

const theWorker: LegSender = { signs: true, start: (scene) => scene.startWorker() }

const leadUs = 500_000
const pollMs = 200

/**
 * Runs a leg. If other programs used more than a tenth of the machine, runs it again, up to four times in
 * all. Fails if all runs were disturbed, if a message is missing or repeated, or if the producer or the
 * servers were too slow to trust the figures. Without a Kafka that the benchmark has started, there is only
 * one run.
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
    const beside = delay((window.fromUs - monotonicUs()) / 1_000).then(() => leg.atWindow?.(scene))
    const [{ cpuUs, othersShare }] = await Promise.all([cpuIn(window, sender), beside])
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

/** Returns a worker's counts of the places where missing messages may be. */
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
