import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { BenchmarkFailure } from '../support/failure.ts'
import { plainKafka } from '../support/plain-kafka.ts'
import { preload } from '../support/preload.ts'
import { type RunningWorker, sumMetric } from '../support/running-worker.ts'
import { say } from '../support/say.ts'
import type { Scene, Stage } from '../support/stage.ts'
import { readTopic } from '../support/topic-reader.ts'
import { messageAt } from './message.ts'
import { type BurstReceiver, startBurstReceiver } from './receiver.ts'

/** A burst of messages to one destination that can't take them at once. */
export type Burst = {
  readonly name: string
  readonly count: number
  /** The keys are spread over this many users. */
  readonly users: number
  /** Settings of the destination in the catalog. */
  readonly destination: object
  readonly answerMs: number
  readonly processes: number
  /** The time that a sender without any loss needs, in seconds. */
  readonly idealS: number
}

export type Drained = {
  readonly drain_ratio: number
  readonly drain_s: number
  readonly requests_per_message: number
  readonly disordered: number
}

const settleMs = 1_500
const pollMs = 20

/** Measures how long a burst takes until all of it has come, as a ratio to its ideal. */
export async function drainBurst(stage: Stage, burst: Burst): Promise<Drained> {
  const receiver = await startBurstReceiver(burst.answerMs)
  try {
    const { scene, worker } = await open(stage, receiver, burst)
    try {
      // The start of the worker is over before the burst begins.
      await delay(settleMs)
      receiver.begin()
      const startedMs = performance.now()
      await preload(stage.brokers, scene.topic, burst.count, (index) => messageAt(index, burst.users))
      await receiver.all(burst.count, 3 * burst.idealS + 60)
      const drainS = (performance.now() - startedMs) / 1_000
      await worker.stop()
      const drained = {
        drain_ratio: drainS / burst.idealS,
        drain_s: drainS,
        requests_per_message: receiver.requests / burst.count,
        disordered: receiver.disordered,
      }
      say(`${burst.name}: ${drainS.toFixed(1)} s of ${burst.idealS} s, ${receiver.requests} requests`)
      return drained
    } finally {
      await worker.abandon()
    }
  } finally {
    await receiver.stop()
  }
}

export type Resumed = {
  readonly resume_first_s: number
  readonly takeover_s: number
  readonly writes_per_waiting: number
  readonly mark_bytes_per_waiting: number
  readonly index_bytes_per_waiting: number
  readonly waiting: number
  readonly drain_per_s: number
  readonly repeats: number
}

/**
 * Lets messages of a paused destination wait, restarts the worker, and switches the destination on. Measures
 * how long the takeover takes, and when the first message comes after the edit of the catalog.
 */
export async function resumeMany(stage: Stage, count: number): Promise<Resumed> {
  const receiver = await startBurstReceiver(0)
  const burst = { destination: { state: 'paused' }, processes: 1 }
  try {
    const { scene, worker, rewrite } = await open(stage, receiver, burst)
    await preload(stage.brokers, scene.topic, count, (index) => messageAt(index, count / 10))
    await allWait(worker, count)
    const bytes = sumMetric(await worker.metrics(), 'sluice_waiting_index_bytes')
    say(`${count.toLocaleString('en')} wait, restarting the worker`)
    await worker.stop()
    const again = await scene.startWorker()
    try {
      await allWait(again, count)
      receiver.begin()
      const editedMs = performance.now()
      rewrite({})
      await receiver.all(1, 60)
      const firstMs = Math.min(...receiver.arrivedMs.values())
      await receiver.all(count, count / 200 + 60)
      const drainedMs = performance.now()
      const log = await again.stop()
      const written = await writes(stage.brokers, scene.topic.replace(/events$/, ''))
      return {
        resume_first_s: (firstMs - editedMs) / 1_000,
        takeover_s: takeoverMs(log) / 1_000,
        writes_per_waiting: written.records / count,
        mark_bytes_per_waiting: written.markBytes / count,
        index_bytes_per_waiting: bytes / count,
        waiting: count,
        drain_per_s: count / ((drainedMs - firstMs) / 1_000),
        repeats: receiver.requests - count,
      }
    } finally {
      await again.abandon()
    }
  } finally {
    await receiver.stop()
  }
}

async function open(
  stage: Stage,
  receiver: BurstReceiver,
  { destination, processes }: Pick<Burst, 'destination' | 'processes'>,
): Promise<{ scene: Scene; worker: RunningWorker; rewrite: (destination: object) => void }> {
  const catalogFile = join(stage.folder, 'burst.json')
  const rewrite = (settings: object): void => {
    const one = { id: 'burst', sources: ['burst'], hooks: [{ url: receiver.url }], ...settings }
    writeFileSync(catalogFile, JSON.stringify({ sources: [{ id: 'burst' }], destinations: [one] }))
  }
  rewrite(destination)
  const scene = await stage.setScene({
    // The scene's fleet isn't used. The destination of this benchmark has its own receiver and catalog.
    fleet: { count: 1 },
    variables: { SLUICE_CATALOG_FILE: catalogFile, SLUICE_WORKER_PROCESSES: String(processes) },
  })
  return { scene, worker: await scene.startWorker(), rewrite }
}

async function allWait(worker: RunningWorker, count: number): Promise<void> {
  const deadlineMs = performance.now() + 60_000 + count
  for (;;) {
    const waiting = sumMetric(await worker.metrics(), 'sluice_waiting_messages')
    if (waiting >= count) return
    if (performance.now() > deadlineMs) throw new BenchmarkFailure(`${waiting} of ${count} messages wait`)
    await delay(pollMs)
  }
}

/** Returns the longest takeover of a unit's queues, in milliseconds, from the log of a worker. */
function takeoverMs(log: string): number {
  const times = [...log.matchAll(/"tookMs":(\d+),"msg":"took over the messages that wait/g)]
  if (times.length === 0) throw new BenchmarkFailure('the worker took over no waiting message')
  return Math.max(...times.map(([, ms]) => Number(ms)))
}

async function writes(
  brokers: readonly string[],
  prefix: string,
): Promise<{ records: number; markBytes: number }> {
  let [records, markBytes] = [0, 0]
  const admin = plainKafka(brokers).admin()
  await admin.connect()
  const offsets = await admin.fetchTopicOffsets(`${prefix}waiting`)
  await admin.disconnect()
  for (const { high } of offsets) records += Number(high)
  await readTopic(brokers, `${prefix}waiting-marks`, ({ key, value }) => {
    records++
    markBytes += (key?.length ?? 0) + (value?.length ?? 0)
  })
  return { records, markBytes }
}
