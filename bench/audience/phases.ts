import { setTimeout as delay } from 'node:timers/promises'
import { BenchmarkFailure } from '../support/failure.ts'
import { type RunningWorker, sumMetric } from '../support/running-worker.ts'
import { median } from '../support/statistics.ts'
import type { Stand } from './stand.ts'
import type { Cast } from './users.ts'

/** The time and the CPU time, in seconds, that `count` users or changes took. */
export type Work = { count: number; seconds: number; cpuSeconds: number }

export type Created = {
  /** Seconds from the first part of the sync until the topic `memberships` held all memberships. */
  writtenS: number
  delivered: Work
  rssMib: number
}

export type Restored = {
  /** Time from the start of the first unit's restoration to the end of the last, by the worker's log. */
  seconds: number
  records: number
  /** Seconds from the start of the worker process until it was ready. */
  readyS: number
}

/**
 * Time between two looks at a count. It is long because a read of the metrics costs the worker some
 * milliseconds.
 */
const pollMs = 500
const stuckMs = 60_000
const settleMs = 5_000
const rssSamples = 5

/**
 * Creates an audience of new users with one sync, at a worker that is ready. Times count from the moment
 * when the first part is sent.
 */
export async function create(
  { receiver, upstream }: Stand,
  worker: RunningWorker,
  cast: Cast,
): Promise<Created> {
  receiver.begin(cast.users)
  const write = upstream.prepareSync(cast.before(), Date.now())
  const cpuBeforeUs = worker.cpuUs()
  const startedMs = performance.now()
  const sinceS = (): number => (performance.now() - startedMs) / 1_000
  await write()
  const written = grown(async () => synced(await worker.metrics(), 'joined'), cast.members).then(sinceS)
  const delivered = grown(() => receiver.progress(), cast.members).then(sinceS)
  const [writtenS, deliveredS] = await Promise.all([written, delivered])
  const cpuSeconds = (worker.cpuUs() - cpuBeforeUs) / 1e6
  return {
    writtenS,
    delivered: { count: cast.members, seconds: deliveredS, cpuSeconds },
    rssMib: await restingRssMib(worker),
  }
}

/**
 * Sends a second sync, with the users who joined and without the users who left. Fails if the number of
 * Identifies that come isn't the number of these users. `checkIdentifies` checks which users got them.
 */
export async function resync(
  { receiver, upstream }: Stand,
  worker: RunningWorker,
  cast: Cast,
): Promise<Work> {
  const write = upstream.prepareSync(cast.after(), Date.now())
  const cpuBeforeUs = worker.cpuUs()
  const startedMs = performance.now()
  await write()
  const count = 2 * cast.joining
  await grown(() => receiver.progress(), cast.members + count)
  await grown(async () => synced(await worker.metrics(), 'unchanged'), cast.members - cast.joining)
  const seconds = (performance.now() - startedMs) / 1_000
  return { count, seconds, cpuSeconds: (worker.cpuUs() - cpuBeforeUs) / 1e6 }
}

/**
 * Checks the Identifies that came. Each user who ever was a member must have got one Identify of entering the
 * audience. Each user who left must also have got one of leaving it. Fails if anything else came.
 */
export async function checkIdentifies({ receiver }: Stand, cast: Cast): Promise<void> {
  // Wait, so that requests that should not come have time to come.
  await delay(settleMs)
  const { entered, left, unknown } = await receiver.report()
  if (unknown > 0) throw new BenchmarkFailure(`${unknown} requests are no Identify of the audience`)
  for (let number = 0; number < cast.users; number++) {
    const wanted = cast.isLeaving(number) ? 1 : 0
    if (entered[number] !== 1 || left[number] !== wanted) {
      throw new BenchmarkFailure(
        `user ${number} was told ${entered[number]} times to be in the audience and ${left[number]} times not to be, and not 1 and ${wanted} times`,
      )
    }
  }
}

/**
 * Deletes the store, and starts a worker, which then restores the store. `readyS`: seconds until it was
 * ready.
 */
export async function restore(stand: Stand): Promise<{ worker: RunningWorker; readyS: number }> {
  stand.removeStore()
  const startedMs = performance.now()
  const worker = await stand.startWorker()
  return { worker, readyS: (performance.now() - startedMs) / 1_000 }
}

type LogLine = { msg?: string; time?: string | number; tookMs?: number; records?: number }

/** Returns the number of records that the worker restored, and the time that this took, from its log. */
export function readRestored(log: string): { seconds: number; records: number } {
  const units = log
    .split('\n')
    .filter((line) => line.includes('the state of a unit is complete'))
    .map((line) => {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the worker's log
      const { time = 0, tookMs = 0, records = 0 } = JSON.parse(line) as LogLine
      const endMs = new Date(time).getTime()
      return { endMs, startMs: endMs - tookMs, records }
    })
  if (units.length === 0) throw new BenchmarkFailure('the worker tells of no state that was restored')
  const startMs = Math.min(...units.map((unit) => unit.startMs))
  const endMs = Math.max(...units.map((unit) => unit.endMs))
  const records = units.reduce((sum, unit) => sum + unit.records, 0)
  return { seconds: (endMs - startMs) / 1_000, records }
}

/** Sends the present audience once more to a ready worker, which finds that nothing has changed. */
export async function compareSync({ upstream }: Stand, worker: RunningWorker, cast: Cast): Promise<Work> {
  const write = upstream.prepareSync(cast.after(), Date.now())
  await delay(settleMs)
  const cpuBeforeUs = worker.cpuUs()
  const startedMs = performance.now()
  await write()
  await grown(async () => synced(await worker.metrics(), 'unchanged'), cast.members)
  const cpuSeconds = (worker.cpuUs() - cpuBeforeUs) / 1e6
  return { count: cast.members, seconds: (performance.now() - startedMs) / 1_000, cpuSeconds }
}

/**
 * Measures how a worker that was just started handles single changes that waited in Kafka. The cost of the
 * start, and the changes handled before the first look at the metrics, are left out. If this look finds
 * more than half of the changes handled, the rest is too small to measure. Then all changes count, with all
 * CPU time of the process since its start. `seconds` always begins at the first look.
 */
export async function compareChanges(
  { memberships }: Stand,
  worker: RunningWorker,
  { changes, outcome }: { changes: number; outcome: 'confirmed' | 'outdated' },
): Promise<Work> {
  const count = async (): Promise<number> => {
    const metrics = await worker.metrics()
    const waiting = sumMetric(metrics, 'sluice_consumer_lag_records', { topic: memberships })
    const done = sumMetric(metrics, 'sluice_audience_changes_total', { outcome })
    return done === changes && waiting > 0 ? changes - 1 : done
  }
  const cpuBeforeUs = worker.cpuUs()
  const startedMs = performance.now()
  const before = await count()
  await grown(count, changes)
  const seconds = (performance.now() - startedMs) / 1_000
  const cpuUs = worker.cpuUs()
  const isMostlyDone = before > changes / 2
  return {
    count: isMostlyDone ? changes : changes - before,
    seconds,
    cpuSeconds: (isMostlyDone ? cpuUs : cpuUs - cpuBeforeUs) / 1e6,
  }
}

function synced(metrics: string, outcome: 'joined' | 'left' | 'unchanged'): number {
  return sumMetric(metrics, 'sluice_audience_synced_users_total', { outcome })
}

/**
 * Waits until `count` returns `wanted`. Fails if `count` returns more, or if it doesn't grow for a minute.
 */
async function grown(count: () => Promise<number>, wanted: number): Promise<void> {
  let last = 0
  let progressAtMs = performance.now()
  for (;;) {
    const now = await count()
    if (now === wanted) return
    if (now > wanted) throw new BenchmarkFailure(`there are ${now} instead of ${wanted}`)
    if (now > last) progressAtMs = performance.now()
    last = now
    if (performance.now() - progressAtMs > stuckMs) {
      throw new BenchmarkFailure(`nothing more came for ${stuckMs / 1_000} s after ${now} of ${wanted}`)
    }
    await delay(pollMs)
  }
}

/**
 * Returns the memory of a worker that has nothing to do any more, in MiB: the median of some samples of its
 * metric `process_resident_memory_bytes` (VmRSS in /proc/self/status).
 */
async function restingRssMib(worker: RunningWorker): Promise<number> {
  await delay(settleMs)
  const samples: number[] = []
  while (samples.length < rssSamples) {
    samples.push(sumMetric(await worker.metrics(), 'process_resident_memory_bytes') / 1024 ** 2)
    await delay(settleMs / rssSamples)
  }
  return median(samples)
}
