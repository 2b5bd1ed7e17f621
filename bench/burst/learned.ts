import { setTimeout as delay } from 'node:timers/promises'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { preload } from '../support/preload.ts'
import { startWorker } from '../support/running-worker.ts'
import { say } from '../support/say.ts'
import { median } from '../support/statistics.ts'
import { applyTopics, sluiceMain } from '../support/topics.ts'
import { workerVariables } from '../support/worker-variables.ts'
import { messageAt } from './message.ts'
import { type BurstReceiver, startBurstReceiver } from './receiver.ts'

/** What learned limits on requests in flight cost and save. */
export type LearnedFigures = {
  /** Requests for each message, at a receiver with one worker that needs 250 ms. */
  readonly serial_requests_ratio: number
  /** The time until that receiver has all messages, divided by the time that it needs for them. */
  readonly serial_drain_ratio: number
  /** The same with four processes, which share the receiver. */
  readonly serial_4_requests_ratio: number
  readonly serial_4_drain_ratio: number
  /**
   * The rate from 2 to 4 s after the first answer at receivers that take any number at once, divided by the
   * rate of a worker that makes as many requests at once as the ceiling allows. The least of three latencies.
   */
  readonly fast_rate_ratio: number
}

/** Measures the learned limits. The receivers run in this process. */
export async function measureLearned(
  { folder, brokers }: Pick<Stand, 'folder' | 'brokers'>,
  runs: number,
): Promise<LearnedFigures> {
  const stand: Stand = { folder, brokers, scenes: 0 }
  const serial = await measureSerial(stand, 1)
  const serial4 = await measureSerial(stand, 4)
  const ratios: number[] = []
  for (const latencyMs of latencies) ratios.push(await fastRatio(stand, latencyMs, runs))
  return {
    serial_requests_ratio: serial.requests / serialMessages,
    serial_drain_ratio: serial.seconds / serialIdealS,
    serial_4_requests_ratio: serial4.requests / serialMessages,
    serial_4_drain_ratio: serial4.seconds / serialIdealS,
    fast_rate_ratio: Math.min(...ratios),
  }
}

type Stand = { readonly folder: string; readonly brokers: readonly string[]; scenes: number }
type Serial = { readonly requests: number; readonly taken: number; readonly seconds: number }

const serialMs = 250
const serialMessages = 300
const serialIdealS = (serialMessages * serialMs) / 1_000
/** The rungs of the ladder are short, so that messages that timed out come again during the run. */
const ladder = { SLUICE_RETRY_LADDER: '10s,10s,20s', SLUICE_RETRY_THEN: '20s' }
const mostSerialS = 300
const latencies = [5, 50, 500]
const fastMessages = 60_000
const fromMs = 2_000
const untilMs = 4_000
const heldMain = join(import.meta.dirname, 'held-at-ceiling.ts')

async function measureSerial(stand: Stand, processes: number): Promise<Serial> {
  const receiver = await startBurstReceiver(serialMs, { isSerial: true })
  const run = await startRun(stand, receiver, { messages: serialMessages, main: sluiceMain, processes })
  const startMs = performance.now()
  try {
    while (receiver.answeredAtMs.length < serialMessages && performance.now() - startMs < mostSerialS * 1_000)
      await delay(100)
    const { requests, answeredAtMs } = receiver
    const seconds = ((answeredAtMs.at(-1) ?? 0) - (answeredAtMs[0] ?? 0)) / 1_000
    say(
      `one worker, ${serialMs} ms, ${processes} of ours: ${requests} requests, ${answeredAtMs.length} messages, ${seconds.toFixed(1)} s`,
    )
    return { requests, taken: answeredAtMs.length, seconds }
  } finally {
    await run.stop()
  }
}

/** Returns the median of the ratios of the rates, learned to held at the ceiling. */
async function fastRatio(stand: Stand, latencyMs: number, runs: number): Promise<number> {
  const ratios: number[] = []
  for (let run = 1; run <= runs; run++) {
    const learned = await fastRate(stand, latencyMs, sluiceMain)
    const held = await fastRate(stand, latencyMs, heldMain)
    say(`${latencyMs} ms, run ${run}: ${Math.round(learned)}/s learned, ${Math.round(held)}/s at the ceiling`)
    ratios.push(learned / held)
  }
  return median(ratios)
}

async function fastRate(stand: Stand, latencyMs: number, main: string): Promise<number> {
  const receiver = await startBurstReceiver(latencyMs)
  const messages = Math.min(fastMessages, Math.ceil((64 / latencyMs) * 8_000))
  const run = await startRun(stand, receiver, { messages, main, processes: 1 })
  try {
    while (receiver.answeredAtMs.length === 0) await delay(5)
    await delay(untilMs + 200)
    const firstMs = receiver.answeredAtMs[0] ?? 0
    const inWindow = receiver.answeredAtMs.filter(
      (atMs) => atMs >= firstMs + fromMs && atMs < firstMs + untilMs,
    )
    return (inWindow.length * 1_000) / (untilMs - fromMs)
  } finally {
    await run.stop()
  }
}

type RunSettings = { readonly messages: number; readonly main: string; readonly processes: number }

/** Starts a worker on new topics that hold messages for the receiver. */
async function startRun(
  stand: Stand,
  receiver: BurstReceiver,
  { messages, main, processes }: RunSettings,
): Promise<{ stop(): Promise<void> }> {
  const { folder, brokers } = stand
  const prefix = `burst-${process.pid}-${++stand.scenes}.`
  const catalogFile = join(folder, 'catalog.yaml')
  const destination = { id: 'customer', sources: ['burst'], hooks: [{ url: receiver.url }] }
  writeFileSync(catalogFile, JSON.stringify({ sources: [{ id: 'burst' }], destinations: [destination] }))
  const variables = {
    ...workerVariables({ brokers, prefix, catalogFile }),
    SLUICE_KAFKA_GROUP_ID: `${prefix}workers`,
    SLUICE_TOPICS_PARTITIONS: '12',
    SLUICE_WORKER_PROCESSES: String(processes),
    ...ladder,
  }
  await applyTopics(folder, variables)
  await preload(brokers, `${prefix}events`, messages, (index) => messageAt(index, messages))
  const worker = await startWorker({ outputFile: join(folder, 'worker.log'), variables, nodeFlags: [], main })
  return {
    async stop() {
      await worker.abandon()
      await receiver.stop()
    },
  }
}
