import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BenchmarkFailure } from '../support/failure.ts'
import { say } from '../support/say.ts'
import type { BenchmarkResult } from '../support/settings.ts'
import { median } from '../support/statistics.ts'
import { openStage, type Stage } from '../support/stage.ts'
import type { RunningWorker } from '../support/running-worker.ts'
import {
  checkIdentifies,
  compareChanges,
  compareSync,
  create,
  readRestored,
  restore,
  type Restored,
  resync,
  type Work,
} from './phases.ts'
import { resultOf } from './result.ts'
import type { Played } from './played.ts'
import { openStand, type Stand } from './stand.ts'
import { Cast } from './users.ts'

export type AudienceSettings = {
  members?: number
  profileDir?: string
}

/** The large audience has this many times the members of the small audience. */
const times = 10
/**
 * Number of workers that are measured for each size of the audience. V8 keeps sometimes more and sometimes
 * fewer of the pages that it has used, so the median of these workers is the result.
 */
const memoryWorkers = 3

/**
 * Measures what an audience costs one worker process that keeps its state on disk. These are the steps:
 * - A sync creates the audience.
 * - A second sync adds and removes a hundredth of the members.
 * - A worker restores the state after the store was deleted.
 * - Workers compare values that have not changed.
 *
 * The benchmark checks each Identify by user and value, and fails if one comes twice. The memory is measured
 * with three workers that create a tenth of the audience, and with three that create the whole audience.
 *
 * In the last step, the single changes change no state, because they are older than the states of their
 * users. Half of them have the value of the user's state, and half have the other value. Before them, a newer
 * version of its value is written for each user. So a worker can't decide about the changes by the version of
 * a sync.
 */
export async function runAudienceBenchmark(settings: AudienceSettings): Promise<BenchmarkResult> {
  const { members = 1_000_000, profileDir } = settings
  if (members < leastMembers) throw new BenchmarkFailure(`an audience needs ${leastMembers} members`)
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const stage = await openStage({ destinations: 1, profileDir, report: say })
  try {
    const small: number[] = []
    const large: number[] = []
    for (let worker = 0; worker < memoryWorkers; worker++) {
      small.push(await memoryOf(stage, folder, new Cast(Math.round(members / times))))
      // The last large audience is created by `playAll`, which goes on with the other steps.
      if (worker > 0) large.push(await memoryOf(stage, folder, new Cast(members)))
    }
    const played = await playAll(stage, folder, new Cast(members))
    large.push(played.created.rssMib)
    return resultOf({ members, smallRssMib: median(small), rssMib: median(large), ...played })
  } finally {
    await stage.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

const leastMembers = 1_000

/** Returns the memory (RSS) of a worker that has created an audience, in MiB. */
async function memoryOf(stage: Stage, folder: string, cast: Cast): Promise<number> {
  return withStand(stage, folder, (stand) =>
    withWorker(
      () => stand.startWorker(),
      async (worker) => {
        const created = await create(stand, worker, cast)
        say(`created ${cast.members}: ${described(created.delivered)}, RSS ${created.rssMib.toFixed(0)} MiB`)
        return created.rssMib
      },
    ),
  )
}

async function playAll(stage: Stage, folder: string, cast: Cast): Promise<Played> {
  return withStand(stage, folder, async (stand) => {
    const { upstream } = stand
    const { created, resynced } = await withWorker(
      () => stand.startWorker(),
      async (worker) => {
        const first = await create(stand, worker, cast)
        say(
          `created ${cast.members}: written in ${first.writtenS.toFixed(1)} s, ${described(first.delivered)}, RSS ${first.rssMib.toFixed(0)} MiB`,
        )
        const second = await resync(stand, worker, cast)
        await checkIdentifies(stand, cast)
        say(`synced again: ${described(second)}`)
        return { created: first, resynced: second }
      },
    )

    let readyS = 0
    let log = ''
    const syncCompared = await withWorker(
      async () => {
        const started = await restore(stand)
        readyS = started.readyS
        return started.worker
      },
      (worker) => compareSync(stand, worker, cast),
      (text) => (log = text),
    )
    const restored: Restored = { ...readRestored(log), readyS }
    if (restored.records < cast.members) {
      throw new BenchmarkFailure(`${restored.records} records were restored for ${cast.members} members`)
    }
    say(
      `restored ${restored.records} records in ${restored.seconds.toFixed(1)} s, ready in ${readyS.toFixed(1)} s`,
    )
    say(`synced as it is: ${described(syncCompared)}`)

    const nowMs = Date.now()
    const isMember = (number: number): boolean => !cast.isLeaving(number)
    await upstream.writeChanges({ users: cast.members, atMs: nowMs, isMember })
    const quiet = await withWorker(
      () => stand.startWorker(),
      (worker) => compareChanges(stand, worker, { changes: cast.members, outcome: 'confirmed' }),
    )
    say(`the same value, newer: ${described(quiet)}`)

    await upstream.writeChanges({
      users: cast.members,
      // Newer than the last sync, and older than the version that each user has now.
      atMs: nowMs - 1,
      isMember: (number) => number % 2 === 0,
    })
    const changesCompared = await withWorker(
      () => stand.startWorker(),
      (worker) => compareChanges(stand, worker, { changes: cast.members, outcome: 'outdated' }),
    )
    say(`older: ${described(changesCompared)}`)
    await checkIdentifies(stand, cast)
    return { created, resynced, restored, syncCompared, quiet, changesCompared }
  })
}

async function withStand<T>(stage: Stage, folder: string, use: (stand: Stand) => Promise<T>): Promise<T> {
  const stand = await openStand(stage, folder)
  try {
    return await use(stand)
  } finally {
    await stand.close()
  }
}

/** Starts a worker, uses it, and stops it. After the worker has ended, `onLog` gets its log. */
async function withWorker<T>(
  start: () => Promise<RunningWorker>,
  use: (worker: RunningWorker) => Promise<T>,
  onLog: (log: string) => void = () => undefined,
): Promise<T> {
  const worker = await start()
  try {
    const result = await use(worker)
    onLog(await worker.stop())
    return result
  } finally {
    await worker.abandon()
  }
}

function described({ count, seconds, cpuSeconds }: Work): string {
  return `${count} in ${seconds.toFixed(1)} s, ${((cpuSeconds / count) * 1e6).toFixed(1)} µs of CPU each`
}
