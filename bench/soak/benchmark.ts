import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { monotonicUs } from '../support/clock.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import { writeFleet } from '../support/fleet.ts'
import { watchOthers } from '../support/machine-cpu.ts'
import { type Produced, startProducer } from '../support/producer-process.ts'
import type { RunningWorker } from '../support/running-worker.ts'
import { say } from '../support/say.ts'
import type { BenchmarkResult } from '../support/settings.ts'
import { openStage, type Stage } from '../support/stage.ts'
import { messagesOf, type Stream } from '../support/streams.ts'
import { type Customers, startCustomers } from './customers-process.ts'
import { editsIn, faultsOfQuarter } from './faults.ts'
import { behaviours, type CatalogState, destinationCount, secrets, settingsOf } from './fleet.ts'
import { findLosses } from './losses.ts'
import { actor, playFaults } from './play.ts'
import { quarters, resultOf, samplesOfQuarter } from './result.ts'
import { mibOf, openMessages, type Sample, takeSample } from './samples.ts'
import { faultOf } from './trust.ts'

export type SoakSettings = {
  minutes?: number
  /** The number of messages a second to all destinations together. */
  rate?: number
  profileDir?: string
}

/**
 * Measures whether the worker's memory stays constant. One worker process gets a steady load by the clock for
 * 50 destinations. Four destinations make trouble all the time: one never answers, one is slow, one answers
 * half of its requests with 500, and one resets connections. The benchmark also restarts receivers and edits
 * the catalog, in the same way in each quarter. The ladder is shortened to 5 s, 15 s and 45 s, with a limit
 * of 90 s, so that retries and dead letters are steady long before the second quarter. The benchmark compares
 * the median RSS and heap of the last quarter with those of the second. At the end it looks for every
 * message, at its receiver and in the dead letters.
 */
export async function runSoakBenchmark(settings: SoakSettings): Promise<BenchmarkResult> {
  const { minutes = 20, rate = 300, profileDir } = settings
  const stream: Stream = {
    first: 0,
    count: destinationCount,
    perS: rate,
    fromS: 0,
    untilS: minutes * 60,
    order: 'turn',
  }
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const customers = await startCustomers({ behaviours, secrets, messages: messagesOf(stream) })
  const stage = await openStage({ destinations: 1, profileDir, report: say })
  try {
    return await run({ stage, customers, catalogFile: join(folder, 'catalog.yaml'), stream })
  } finally {
    await stage.close()
    await customers.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

const ladder = {
  SLUICE_RETRY_LADDER: '5s,15s,45s',
  SLUICE_RETRY_THEN: '45s',
  SLUICE_RETRY_LIMIT: '90s',
}
/**
 * How long the last messages may take, in seconds: the limit of the ladder, and as much again for a busy
 * machine.
 */
const drainS = 180
const leadUs = 500_000
const downMs = 2_000
const pollMs = 500

type Run = {
  stage: Stage
  customers: Customers
  catalogFile: string
  stream: Stream
}

async function run({ stage, customers, catalogFile, stream }: Run): Promise<BenchmarkResult> {
  const { brokers } = stage
  const writeCatalog = (state: CatalogState): void =>
    writeFleet(catalogFile, {
      count: destinationCount,
      urlOf: (destination) => customers.urlOf(destination),
      settings: settingsOf(state),
    })
  writeCatalog({ isOff: false, secret: 0 })
  const scene = await stage.setScene({
    // The scene's fleet isn't used. The destinations of this benchmark have their own receivers and catalog.
    fleet: { count: 1 },
    variables: { SLUICE_CATALOG_FILE: catalogFile, ...ladder },
  })
  const worker = await scene.startWorker()
  const producer = await startProducer({ brokers, topic: scene.topic, streams: [stream], fromS: 0 })
  const stopping = new AbortController()
  try {
    const startUs = monotonicUs() + leadUs
    const quarterS = stream.untilS / quarters
    const faults = faultsOfQuarter(quarterS)
    const act = actor({ customers, writeCatalog, downMs })
    const watched = watchOthers()
    const [samples, produced] = await Promise.all([
      sampleAll(worker, startUs, stream.untilS),
      producer.run(startUs),
      playFaults({ startUs, quarterS, faults, act, signal: stopping.signal }),
    ])
    const othersShare = watched()
    const last = await drained(worker, produced)
    const report = await customers.report()
    const edits = { made: quarters * editsIn(faults), taken: countEdits(await worker.stop()) }
    say('looking for every message')
    const deadLetters = scene.topic.replace(/events$/, 'dead-letters')
    const { accepted } = report
    const planned = messagesOf(stream)
    const losses = await findLosses({ brokers, deadLetters, stream, messages: planned, accepted })
    const fault = faultOf({ produced, planned, report, losses, last, edits })
    if (fault !== undefined) throw new BenchmarkFailure(fault)
    return resultOf({ samples, last, report, losses, produced, edits, faults, othersShare, stream })
  } finally {
    stopping.abort()
    await producer.stop()
    await worker.abandon()
  }
}

/** Returns one sample of the start, and further samples at even distances up to the end. */
async function sampleAll(worker: RunningWorker, startUs: number, lengthS: number): Promise<Sample[]> {
  const samples: Sample[] = []
  const count = quarters * samplesOfQuarter
  for (let index = 0; index <= count; index++) {
    const dueUs = startUs + (index / count) * lengthS * 1_000_000
    await delay(Math.max(0, (dueUs - monotonicUs()) / 1_000))
    const sample = await takeSample(worker)
    samples.push(sample)
    if (index % (samplesOfQuarter / 5) === 0) say(describe(index / samplesOfQuarter, sample))
  }
  return samples
}

/** Waits until every message has ended, at most `drainS`. Returns the last sample. */
async function drained(worker: RunningWorker, { messages }: Produced): Promise<Sample> {
  const deadlineMs = performance.now() + drainS * 1_000
  for (;;) {
    const sample = await takeSample(worker)
    const isDone = sample.events >= messages && openMessages(sample) === 0
    // After the deadline, `findLosses` finds the missing messages.
    if (isDone || performance.now() > deadlineMs) return sample
    await delay(pollMs)
  }
}

/** Returns the number of edits of the catalog that the worker has loaded. */
function countEdits(log: string): number {
  return log.split('"msg":"the catalog has changed"').length - 1
}

function describe(quarter: number, sample: Sample): string {
  const { rssBytes, heapBytes, delivered, retries, dead } = sample
  return `quarter ${quarter.toFixed(1)}: RSS ${mibOf(rssBytes).toFixed(0)} MiB, heap ${mibOf(heapBytes).toFixed(0)} MiB, ${delivered} delivered, ${retries} retries, ${dead} dead, ${openMessages(sample)} open`
}
