import { setTimeout as delay } from 'node:timers/promises'
import { spread } from '../audience-files/distinct.ts'
import type { JobLog } from './job-log.ts'
import { JobRun, type JobRunOptions, type RunEnd } from './job-run.ts'
import { type Job, stateOf } from './jobs.ts'
import type { Tally } from './replay-tally.ts'

export type RunnerOptions = Pick<JobRunOptions, 'owner' | 'produce' | 'isOwner' | 'backlog' | 'remainder'> & {
  /** The number of units. */
  readonly partitions: number
  readonly log: JobLog
  /** Returns the reader of a job's topic, and the function that decides about the topic's records. */
  readonly open: (job: Job) => Pick<JobRunOptions, 'pieces' | 'choose'>
  readonly observer: RunnerObserver
}

export type RunnerObserver = {
  begun(job: Job): void
  sent(jobId: string, count: number): void
  ended(job: Job, how: RunEnd['kind'], done: Tally): void
  /** Called when a replay or a read of `replay-jobs` has failed. The runner tries again. */
  failed(jobId: string | undefined, error: unknown): void
}

type Running = {
  readonly unit: number
  readonly run: JobRun
  readonly stopping: AbortController
  readonly done: Promise<void>
}

const lookEveryMs = 1_000
const lookIdleEveryMs = 2_000
const againAfterMs = 5_000
const patienceMs = 1_000
const mostAtOnce = 8

/**
 * Runs the replays of this worker's units. The id of a replay determines the unit to which the replay
 * belongs. So each replay has one owner at a time. If the unit gets a new owner, the new owner continues the
 * replay.
 */
export class ReplayRunner {
  readonly #options: RunnerOptions
  readonly #units = new Set<number>()
  readonly #running = new Map<string, Running>()
  readonly #notBeforeMs = new Map<string, number>()
  readonly #stopping = new AbortController()
  readonly #loop: Promise<void>

  constructor(options: RunnerOptions) {
    this.#options = options
    this.#loop = this.#run()
  }

  /** The number of replays that run in this process. */
  get running(): number {
    return this.#running.size
  }

  acquire(unit: number): void {
    this.#units.add(unit)
  }

  /**
   * Leaves a unit to its next owner. Resolves when no more records are sent for the unit's replays, or after
   * a second.
   */
  async release(unit: number): Promise<void> {
    this.#units.delete(unit)
    await this.#end(({ unit: of }) => of === unit)
  }

  /**
   * Leaves all units to their next owners and stops. Resolves when no more records are sent, or after a
   * second.
   */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#units.clear()
    await this.#end(() => true)
    await this.#loop
  }

  async #end(isMeant: (running: Running) => boolean): Promise<void> {
    const meant = [...this.#running.values()].filter(isMeant)
    for (const { stopping } of meant) stopping.abort()
    const timeout = new AbortController()
    await Promise.race([
      Promise.all(meant.map(({ done }) => done)),
      delay(patienceMs, undefined, { signal: timeout.signal }).catch(() => undefined),
    ])
    timeout.abort()
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      try {
        if (this.#units.size > 0) await this.#look()
      } catch (error) {
        if (!signal.aborted) this.#options.observer.failed(undefined, error)
      }
      const restMs = this.#running.size > 0 ? lookEveryMs : lookIdleEveryMs
      await delay(restMs, undefined, { signal }).catch(() => undefined)
    }
  }

  async #look(): Promise<void> {
    const { log, owner, isOwner } = this.#options
    await log.update()
    for (const [id, { run, stopping }] of this.#running) {
      const job = log.jobs.get(id)
      const isPassed =
        (job?.progress?.term ?? 0) > run.term ||
        (job?.progress?.term === run.term && job.progress.owner !== owner)
      if (job?.wish.state === 'stop' || isPassed) stopping.abort()
    }
    // If the group has not heard from this process, another process may own the units and do their replays.
    if (!isOwner()) return
    for (const job of log.jobs.all()) if (this.#isDue(job)) this.#begin(job)
  }

  #isDue(job: Job): boolean {
    const { id } = job.order
    const state = stateOf(job)
    if (state === 'done' || state === 'stopped' || this.#running.has(id)) return false
    if (this.#writing >= mostAtOnce || !this.#units.has(this.#unitOf(id))) return false
    return performance.now() >= (this.#notBeforeMs.get(id) ?? 0)
  }

  /** The number of replays that still write records. Those that only wait for their end cost little. */
  get #writing(): number {
    return [...this.#running.values()].filter(({ run }) => !run.isHandedOver).length
  }

  #unitOf(id: string): number {
    return spread(id) % this.#options.partitions
  }

  #begin(job: Job): void {
    const { observer, open, ...shared } = this.#options
    const { id } = job.order
    const stopping = new AbortController()
    const run = new JobRun({
      ...shared,
      ...open(job),
      job,
      onSent: (count) => observer.sent(id, count),
      signal: stopping.signal,
    })
    observer.begun(job)
    const done = run
      .go()
      .then(({ kind, done: tally }) => {
        this.#notBeforeMs.delete(id)
        observer.ended(job, kind, tally)
      })
      .catch((error: unknown) => {
        this.#notBeforeMs.set(id, performance.now() + againAfterMs)
        observer.failed(id, error)
      })
      .finally(() => this.#running.delete(id))
    this.#running.set(id, { unit: this.#unitOf(id), run, stopping, done })
  }
}
