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
  /** Records a second, when they are written and so when they come due. */
  rate?: number
  profileDir?: string
}

/**
 * Whether parked records come out on time. A worker runs; records are written steadily to one retry topic, as a
 * worker would park them, and all are there before the first is due. A record is due when its tier's wait has
 * passed since the broker appended it, so they come due as steadily as they were written: at a rate that the worker
 * can take, since the promise is about timing. When each was appended is read from the topic afterwards. All are
 * to come, none early. While all wait, the worker's memory and CPU are looked at: it should have nothing to do.
 *
 * Kafka, the worker and the receiver count by the clock of one machine; with `KAFKA_BROKERS` elsewhere its clock counts too.
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

/** A lane each, so that none is too narrow. */
const destinations = 20
const waitsMs = [1, 5, 10, 30, 60, 240].map((minutes) => minutes * 60_000)
const warmup = { perS: 500, untilS: 30 }
/** Before anything is parked. */
const beforeMs = 15_000
/** How long all of them wait together, at the least. */
const minIdleMs = 30_000
/** The worker asks for the ends of partitions every 5 s: until then it doesn't know of all. */
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
    // Of no use here: these destinations have a receiver of their own, and the catalog beside it.
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

/** The shortest customary wait in which all can be written, and wait together for a while. */
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
  // A record that the worker could not take is parked once more: that is late, and not lost.
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

/** A worker that waits has delivered before: its code is compiled and its memory has grown. */
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

/** By number of the message: when its record was appended, in epoch milliseconds. */
async function readAppends(
  brokers: readonly string[],
  topic: string,
  records: number,
): Promise<Float64Array> {
  const appendedAtMs = new Float64Array(records)
  await readTopic(brokers, topic, ({ headers, timestamp }) => {
    const number = Number(String(headers?.['message-id']).slice(-12))
    // One that was parked once more is there twice.
    if (appendedAtMs[number] === 0) appendedAtMs[number] = Number(timestamp)
  })
  const unread = appendedAtMs.filter((atMs) => atMs === 0).length
  if (unread > 0) throw new BenchmarkFailure(`${topic} lacks ${unread} of the ${records} records`)
  return appendedAtMs
}

function describe({ rssBytes, heapBytes, cpuShare, parked }: Phase): string {
  return `RSS ${mibOf(rssBytes).toFixed(0)} MiB, heap ${mibOf(heapBytes).toFixed(0)} MiB, ${(cpuShare * 100).toFixed(1)} % of a CPU, gauge ${parked.min} to ${parked.max}`
}
