import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { formatWait } from '../../src/retry/duration.ts'
import { monotonicUs } from '../support/clock.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import { writeFleet } from '../support/fleet.ts'
import { startProducer } from '../support/producer-process.ts'
import { type RunningWorker, sumMetric } from '../support/running-worker.ts'
import { say } from '../support/say.ts'
import type { BenchmarkResult } from '../support/settings.ts'
import { openStage, type Stage } from '../support/stage.ts'
import { messagesOf, type Stream } from '../support/streams.ts'
import { latenessOf } from './lateness.ts'
import { mibOf, observe, type Phase } from './phase.ts'
import { type Receiver, startReceiver } from './receiver-process.ts'
import { parkedRecord, type Parking } from './records.ts'
import { type PhaseName, resultOf } from './result.ts'
import { produceSteadily } from './steady.ts'
import { readTopic } from '../support/topic-reader.ts'

export type ParkedSettings = {
  records?: number
  /** The number of records a second, both when they are written and when they come due. */
  rate?: number
  profileDir?: string
}

/**
 * Measures whether parked records are delivered on time. While a worker runs, the benchmark writes records
 * steadily to one retry topic, as a worker would park them. All records are written before the first is due.
 * A record is due when the wait of its tier has passed since the broker appended it. So the records come due
 * as steadily as they were written. The rate is one that the worker can deliver, because the promise is about
 * timing. Afterwards, the benchmark reads from the topic when each record was appended. All records must
 * arrive, and none early. While all records wait, the benchmark samples the memory and the CPU time of the
 * worker, which should have nothing to do.
 *
 * Kafka, the worker and the receiver use the clock of one machine. If `KAFKA_BROKERS` names another machine,
 * the clock of that machine counts too.
 */
export async function runParkedBenchmark(settings: ParkedSettings): Promise<BenchmarkResult> {
  const { records = 500_000, rate = 1_000, profileDir } = settings
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const receiver = await startReceiver()
  const stage = await openStage({ destinations: 1, profileDir, report: say })
  try {
    return await run({ stage, receiver, folder, records, rate })
  } finally {
    await stage.close()
    await receiver.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The number of destinations. Each has its own lane, and with this number no lane is too narrow. */
const destinations = 20
const waitsMs = [1, 5, 10, 30, 60, 240].map((minutes) => minutes * 60_000)
const warmup = { perS: 500, untilS: 30 }
/** How long the worker is observed before anything is parked. */
const beforeMs = 15_000
/** The least time for which all records wait together. */
const minIdleMs = 30_000
/**
 * How long the benchmark waits until the worker's gauge counts all records. The worker asks for the ends of
 * partitions every 5 s.
 */
const gaugeMs = 6_000
const marginMs = 1_000
const pollMs = 500
const hourMs = 3_600_000

async function run({ stage, receiver, folder, records, rate }: Run): Promise<BenchmarkResult> {
  const waitMs = waitFor(records, rate)
  const tier = formatWait(waitMs)
  const catalogFile = join(folder, 'catalog.yaml')
  writeFleet(catalogFile, { count: destinations, urlOf: (number) => `${receiver.origin}/d/${number}` })
  const scene = await stage.setScene({
    // The scene's fleet isn't used. The destinations of this benchmark have their own receiver and catalog.
    fleet: { count: 1 },
    variables: {
      SLUICE_CATALOG_FILE: catalogFile,
      SLUICE_RETRY_LADDER: tier,
      SLUICE_RETRY_THEN: tier,
      SLUICE_RETRY_LIMIT: formatWait(waitMs + 4 * hourMs),
    },
  })
  const topic = scene.topic.replace(/events$/, `retry.${tier}`)
  const worker = await scene.startWorker()
  try {
    await warmUp({ stage, receiver, worker, topic: scene.topic })
    receiver.begin(records)
    const phases = await playPhases({ stage, receiver, worker, records, rate, waitMs, topic, scene })
    const metrics = await worker.metrics()
    await worker.stop()
    say(`reading when they were appended`)
    const appended = await readAppends(stage.brokers, topic, records)
    const report = await receiver.report()
    if (report.unknown > 0) throw new BenchmarkFailure(`${report.unknown} requests with an unknown message`)
    const lateness = latenessOf({ appendedAtMs: appended, arrivedAtMs: report.arrivedAtMs, waitMs })
    const { missing, early, leastMs } = lateness
    const hops = sumMetric(metrics, 'sluice_parked_total')
    if (missing > 0) throw new BenchmarkFailure(`of ${records} parked records ${missing} have not come`)
    if (early > 0) throw new BenchmarkFailure(`${early} of ${records} came early, by up to ${-leastMs} ms`)
    return resultOf({ records, tier, rate, destinations, lateness, phases, hops, repeats: report.repeats })
  } finally {
    await worker.abandon()
  }
}

type Run = { stage: Stage; receiver: Receiver; folder: string; records: number; rate: number }

/**
 * Returns the shortest of the usual waits in which all records can be written, and then wait together for a
 * while.
 */
function waitFor(records: number, rate: number): number {
  const neededMs = (records / rate) * 1_000 + gaugeMs + minIdleMs + marginMs
  const waitMs = waitsMs.find((candidate) => candidate >= neededMs)
  if (waitMs === undefined) throw new BenchmarkFailure('so many at such a rate wait longer than four hours')
  return waitMs
}

async function playPhases({ stage, receiver, worker, records, rate, waitMs, topic, scene }: Play) {
  const tier = formatWait(waitMs)
  const phases = new Map<PhaseName, Phase>()
  const play = async (name: PhaseName, work: Promise<unknown>): Promise<void> => {
    const phase = await observe(worker, tier, work)
    phases.set(name, phase)
    say(`${name}: ${describe(phase)}`)
  }
  await play('before', delay(beforeMs))
  const startedAtMs = Date.now()
  const parking: Parking = {
    destinations,
    eventsTopic: scene.topic,
    firstSeenMs: startedAtMs,
    expiresAtMs: startedAtMs + waitMs + 4 * hourMs,
  }
  const recordAt = (number: number) => parkedRecord(number, parking)
  await play('writing', produceSteadily(stage.brokers, { topic, count: records, perS: rate, recordAt }))
  const lastDueAtMs = Date.now() + waitMs
  const firstDueAtMs = startedAtMs + waitMs
  const come = await receiver.progress()
  if (come > 0) throw new BenchmarkFailure(`${come} came while they were written: the machine is too slow`)
  await delay(gaugeMs)
  await play('waiting', delay(Math.max(0, firstDueAtMs - marginMs - Date.now())))
  // A record that the worker can't take is parked once more. The record is then late and not lost.
  await play('coming due', allArrived(receiver, records, lastDueAtMs + waitMs + minIdleMs))
  return phases
}

type Play = {
  stage: Stage
  receiver: Receiver
  worker: RunningWorker
  records: number
  rate: number
  waitMs: number
  topic: string
  scene: { topic: string }
}

/**
 * Lets the worker deliver messages, so that its code is compiled and its memory has grown before it waits.
 */
async function warmUp({
  stage,
  receiver,
  worker,
  topic,
}: Pick<Play, 'stage' | 'receiver' | 'worker' | 'topic'>): Promise<void> {
  const stream: Stream = { first: 0, count: destinations, ...warmup, fromS: 0, order: 'turn' }
  const messages = messagesOf(stream)
  const { brokers } = stage
  receiver.begin(messages)
  const producer = await startProducer({ brokers, topic, streams: [stream], fromS: 0 })
  try {
    await producer.run(monotonicUs())
    await allArrived(receiver, messages, Date.now() + minIdleMs)
    const parked = sumMetric(await worker.metrics(), 'sluice_parked_total')
    if (parked > 0)
      throw new BenchmarkFailure(`${parked} of the warm-up were parked: the machine is too busy`)
  } finally {
    await producer.stop()
  }
}

async function allArrived(receiver: Receiver, records: number, deadlineAtMs: number): Promise<void> {
  for (;;) {
    const come = await receiver.progress()
    if (come >= records) return
    if (Date.now() > deadlineAtMs) throw new BenchmarkFailure(`${come} of ${records} have come in time`)
    await delay(pollMs)
  }
}

/**
 * Returns when the record of each message was appended, in epoch milliseconds. The index is the message
 * number.
 */
async function readAppends(
  brokers: readonly string[],
  topic: string,
  records: number,
): Promise<Float64Array> {
  const appendedAtMs = new Float64Array(records)
  await readTopic(brokers, topic, ({ headers, timestamp }) => {
    const number = Number(String(headers?.['message-id']).slice(-12))
    // A record that was parked once more is there twice.
    if (appendedAtMs[number] === 0) appendedAtMs[number] = Number(timestamp)
  })
  const unread = appendedAtMs.filter((atMs) => atMs === 0).length
  if (unread > 0) throw new BenchmarkFailure(`${topic} lacks ${unread} of the ${records} records`)
  return appendedAtMs
}

function describe({ rssBytes, heapBytes, cpuShare, parked }: Phase): string {
  return `RSS ${mibOf(rssBytes).toFixed(0)} MiB, heap ${mibOf(heapBytes).toFixed(0)} MiB, ${(cpuShare * 100).toFixed(1)} % of a CPU, gauge ${parked.min} to ${parked.max}`
}
