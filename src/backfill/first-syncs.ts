import { setTimeout as delay } from 'node:timers/promises'
import type { StatesPage, StatesQuery } from '../audience/store/states-page.ts'
import { keyOf } from './connected-spaces.ts'
import { DestinationRates } from './destination-rates.ts'
import { FirstSyncJob, type FirstSyncJobOptions, type JobUnit } from './first-sync-job.ts'
import type { FirstSyncOptions, FirstSyncProgress } from './first-sync-ports.ts'
import type { FirstSyncStep } from './first-sync-step.ts'
import type { Connection } from './marks.ts'
import { UnitStandings } from './unit-standings.ts'

const againAfterMs = 1_000
const patienceMs = 1_000
const longestRestMs = 60_000
/**
 * A first sync holds back while more than this waits for its destination: so many seconds of its rate in this
 * worker, or at least so many Identifies.
 */
const backlogSeconds = 5
const leastBacklog = 500
/** Time between two looks at what waits, in milliseconds. */
const backlogEveryMs = 1_000

/**
 * Sends the present values of a space to destinations that are connected to the space later. The owner of
 * each unit sends the states that its unit holds. The owner writes its progress to `backfills`, and the next
 * owner continues from there. A single loop serves the connections in turn, one batch at a time, so the
 * load doesn't depend on the number of connections.
 */
export class FirstSyncs {
  readonly #options: FirstSyncOptions
  readonly #standings: UnitStandings
  readonly #rates: DestinationRates
  readonly #jobOptions: FirstSyncJobOptions
  readonly #jobs = new Map<string, FirstSyncJob>()
  #waiting: readonly Connection[] = []
  /** The connections for which the observer was told that the destination was left out. */
  readonly #leftOut = new Set<string>()
  /** The reads of stores that are under way. */
  readonly #reading = new Set<Promise<unknown>>()
  readonly #stopping = new AbortController()
  /** The batch that is being sent, and its unit. */
  #telling: { readonly unit: number; readonly done: Promise<void> } = { unit: -1, done: Promise.resolve() }
  readonly #loop: Promise<void>
  #isRoused = false
  #isToPlan = false
  #wake: () => void = () => undefined

  constructor(options: FirstSyncOptions) {
    const { observer } = options
    this.#options = options
    this.#standings = new UnitStandings({
      ...options,
      onLearnt: () => {
        this.#isToPlan = true
      },
      onParted: (connection, isConnected) => this.#part(connection, isConnected),
      onLeftOut: (connection) => this.#leaveOut(connection),
      onFailed: (error) => observer.failed(error),
    })
    const { perSecond, partitions } = options
    this.#rates = new DestinationRates({ perSecond, partitions, ownUnits: () => this.#standings.count })
    this.#jobOptions = {
      ...options,
      standings: this.#standings,
      rates: this.#rates,
      statesOf: (unit, query) => this.#statesOf(unit, query),
      stopping: this.#stopping.signal,
      onEnded: (connection) => {
        this.#jobs.delete(keyOf(connection))
        this.#forgetRates()
      },
    }
    this.#loop = this.#run()
  }

  /**
   * Adds a unit whose states are ready. Applies the present catalog to the unit's standings, and resolves
   * once Kafka has the new standings. If Kafka is slow, resolves after a second, and the standings are
   * written later.
   */
  async acquire(unit: number): Promise<void> {
    this.#standings.acquire(unit)
    await patiently(this.#standings.learn())
    this.#rouse()
  }

  /**
   * Leaves a unit. Waits at most a second for the batch that is being sent from the unit. Then starts to
   * write the unit's progress. Resolves when no states are being read any more, but doesn't wait for the
   * write.
   */
  async release(unit: number): Promise<void> {
    this.#standings.leave(unit)
    for (const job of this.#jobs.values()) job.leave(unit)
    if (this.#telling.unit === unit) await patiently(this.#telling.done)
    this.#standings.release(unit)
    await Promise.allSettled(this.#reading)
  }

  /** Applies a new version of the catalog. */
  catalogChanged(): void {
    this.#standings.catalogChanged()
    this.#plan()
    this.#rouse()
  }

  get progress(): readonly FirstSyncProgress[] {
    const progress: FirstSyncProgress[] = []
    for (const connection of this.#waiting) progress.push({ ...connection, state: 'waiting', left: 0 })
    for (const { connection, left } of this.#jobs.values())
      progress.push({ ...connection, state: 'under_way', left })
    return progress
  }

  /**
   * Leaves all units. Waits at most a second for the batch that is being sent. Then starts to write the
   * progress of the units. Resolves when no states are being read any more, but doesn't wait for these
   * writes.
   */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#rouse()
    await patiently(this.#loop)
    this.#standings.releaseAll()
    await Promise.allSettled(this.#reading)
  }

  #rouse(): void {
    this.#isRoused = true
    this.#wake()
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) await this.#rest(await this.#turn())
  }

  /** Does the steps that are due, and resolves with the time until another step is due, in milliseconds. */
  async #turn(): Promise<number> {
    this.#isRoused = false
    try {
      if (this.#standings.hasNews) await this.#standings.learn()
      if (this.#isToPlan) this.#plan()
      return await this.#work()
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.#options.observer.failed(error)
      return againAfterMs
    }
  }

  /** Waits for `waitMs`, but at most for a minute. Stops waiting early if a step may be due. */
  async #rest(waitMs: number): Promise<void> {
    if (waitMs === 0 || this.#isRoused) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, Math.min(waitMs, longestRestMs))
    this.#wake = resolve
    await promise
    clearTimeout(timer)
  }

  /** Finds out for which connections and units states have to be sent. */
  #plan(): void {
    this.#isToPlan = false
    const units = new Map<string, JobUnit[]>()
    const connections = new Map<string, Connection>()
    const waiting = new Map<string, Connection>()
    for (const { unit, connection, step } of this.#standings.due()) {
      if (step === 'nothing') continue
      const key = keyOf(connection)
      const withLeft = this.#withLeft(unit, connection, step)
      if (step === 'wait') waiting.set(key, connection)
      if (withLeft === undefined) continue
      connections.set(key, connection)
      const due = units.get(key)
      if (due === undefined) units.set(key, [{ unit, withLeft }])
      else due.push({ unit, withLeft })
    }
    this.#waiting = [...waiting.values()]
    for (const key of this.#jobs.keys()) if (!units.has(key)) this.#jobs.delete(key)
    for (const [key, connection] of connections) this.#employ(key, connection, units.get(key) ?? [])
    this.#forgetRates()
  }

  /**
   * Returns true if states of users who have left are sent too. Returns `undefined` if no states are to be
   * sent.
   */
  #withLeft(unit: number, connection: Connection, step: FirstSyncStep): boolean | undefined {
    if (typeof step !== 'string') return step.withLeft
    if (step !== 'go_on') return undefined
    const standing = this.#standings.of(unit, connection)
    return standing?.kind === 'syncing' && standing.withLeft
  }

  #employ(key: string, connection: Connection, units: readonly JobUnit[]): void {
    let job = this.#jobs.get(key)
    if (job === undefined) {
      job = new FirstSyncJob(connection, units, this.#jobOptions)
      this.#jobs.set(key, job)
      void this.#begin(key, job)
    } else {
      job.setUnits(units)
      void job.count().catch((error: unknown) => this.#options.observer.failed(error))
    }
  }

  #forgetRates(): void {
    this.#rates.keepOnly(new Set([...this.#jobs.values()].map(({ connection }) => connection.destinationId)))
  }

  async #begin(key: string, job: FirstSyncJob): Promise<void> {
    const { observer } = this.#options
    try {
      const upTo = await job.prepare()
      if (this.#jobs.get(key) !== job) return
      job.begin(upTo)
      observer.begun(job.connection, { units: job.unitCount, left: job.left })
    } catch (error) {
      if (this.#stopping.signal.aborted) return
      observer.failed(error)
      await delay(againAfterMs, undefined, { signal: this.#stopping.signal }).catch(() => undefined)
      if (this.#jobs.get(key) === job) this.#jobs.delete(key)
      this.#isToPlan = true
    }
    this.#rouse()
  }

  /**
   * Sends one batch and resolves with 0. If no batch is due, resolves with the time until one is due, in
   * milliseconds.
   */
  async #work(): Promise<number> {
    const nowMs = performance.now()
    let waitMs = Infinity
    for (const [key, job] of this.#jobs) {
      const { upTo, next } = job
      if (upTo === undefined) continue
      const jobMs = this.#waitMs(job.connection, nowMs)
      waitMs = Math.min(waitMs, jobMs)
      if (jobMs > 0) continue
      // The job is moved to the end, so that the other jobs come first next time.
      this.#jobs.delete(key)
      this.#jobs.set(key, job)
      if (next === undefined) {
        this.#jobs.delete(key)
        continue
      }
      const done = job.tellSome(next, upTo)
      this.#telling = { unit: next.unit, done }
      await done
      return 0
    }
    return waitMs
  }

  /** Returns the milliseconds until Identifies may be sent to a destination, or 0 if they may be sent now. */
  #waitMs({ destinationId }: Connection, nowMs: number): number {
    const most = Math.max(leastBacklog, backlogSeconds * this.#rates.perSecond)
    if (this.#options.backlogOf(destinationId) > most) return backlogEveryMs
    return this.#rates.waitMs(destinationId, nowMs)
  }

  async #statesOf(unit: number, query: StatesQuery): Promise<StatesPage | undefined> {
    if (this.#stopping.signal.aborted) return undefined
    const reading = this.#options.statesOf(unit, query)
    this.#reading.add(reading)
    try {
      return await reading
    } finally {
      this.#reading.delete(reading)
    }
  }

  #part(connection: Connection, isConnected: boolean): void {
    const key = keyOf(connection)
    // If the destination is connected again and is then left out, the observer is called again.
    this.#leftOut.delete(key)
    if (!this.#jobs.delete(key)) return
    const { marks, observer } = this.#options
    observer.stopped(connection)
    if (isConnected) void marks.needsBackfill(connection.destinationId, connection.spaceId)
  }

  #leaveOut(connection: Connection): void {
    const key = keyOf(connection)
    this.#jobs.delete(key)
    // This method is called for each unit of this worker, but the observer is called only once for the
    // connection.
    if (this.#leftOut.has(key)) return
    this.#leftOut.add(key)
    this.#options.observer.leftOut(connection)
  }
}

/**
 * Waits for work that writes to Kafka, but at most for a second, because Kafka may be unavailable for a long
 * time. Ignores an error of the work.
 */
async function patiently(work: Promise<void>): Promise<void> {
  await Promise.race([work, delay(patienceMs, undefined, { ref: false })]).catch(() => undefined)
}
