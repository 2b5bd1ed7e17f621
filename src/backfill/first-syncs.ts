import { setTimeout as delay } from 'node:timers/promises'
import type { HeldState, StatesPage, StatesQuery } from '../audience/states-page.ts'
import { TokenBucket } from '../pacing/token-bucket.ts'
import { beginToFill } from './begin.ts'
import { type Connections, keyOf } from './connections.ts'
import type { FirstSyncStep } from './first-sync-step.ts'
import type { MarkKeeper } from './mark-keeper.ts'
import { type Connection, needsBackfill } from './marks.ts'
import type { Syncing } from './standing.ts'
import { UnitStandings } from './unit-standings.ts'

export type FirstSyncOptions = {
  /** False: what is connected later is marked, and left out. */
  readonly isWanted: boolean
  /** Identifies a second for one destination, by all workers together. */
  readonly perSecond: number
  /** How many units there are. */
  readonly partitions: number
  /** The catalog in force. */
  readonly catalog: () => Connections
  readonly marks: Pick<MarkKeeper, 'marks' | 'position' | 'tell' | 'needsBackfill'>
  /** Reads the log of marks to its end. Throws where Kafka doesn't answer. */
  readonly readMarks: () => Promise<void>
  /** `undefined`: the unit isn't ours any more. */
  readonly statesOf: (unit: number, query: StatesQuery) => Promise<StatesPage | undefined>
  /** Resolves once Kafka has them all. */
  readonly send: (unit: number, connection: Connection, states: readonly HeldState[]) => Promise<void>
  readonly observer: FirstSyncObserver
}

export type FirstSyncObserver = {
  /** Units and states of this worker. */
  begun(connection: Connection, report: { readonly units: number; readonly left: number }): void
  sent(connection: Connection, count: number): void
  /** The units of this worker are done. `isComplete`: those of all others are too, as far as it knows. */
  ended(
    connection: Connection,
    report: { readonly sent: number; readonly tookMs: number; readonly isComplete: boolean },
  ): void
  /** The destination was switched off, removed or disconnected before it was told all. */
  stopped(connection: Connection): void
  /** It was connected later, and isn't told, since that isn't wanted. */
  leftOut(connection: Connection): void
  /** It is tried again. */
  failed(error: unknown): void
}

/**
 * Of one connection, as far as the units of this worker go. `waiting`: for the destination, or the space, to
 * be on.
 */
export type FirstSyncProgress = Connection & {
  readonly state: 'waiting' | 'under_way'
  /** Identifies still to be written; not those of units that are being counted. */
  readonly left: number
}

/** A destination that is to be told of a space. */
type Job = {
  readonly connection: Connection
  readonly startedMs: number
  /** The marks below it are made up for; `undefined` while that is being found out. */
  upTo: number | undefined
  /** In the order in which they are told. */
  units: readonly JobUnit[]
  /** By unit. */
  readonly left: Map<number, number>
  sent: number
  notedMs: number
}

type JobUnit = { readonly unit: number; readonly withLeft: boolean }

const batchesPerSecond = 4
const mostAtOnce = 500
const countedAtOnce = 1_000
const noteEveryMs = 1_000
const againAfterMs = 1_000
const patienceMs = 1_000
const longestRestMs = 60_000

/**
 * Tells destinations that are connected to a space later who is in it: the owner of each unit does, from what
 * the unit holds. How far that is stands in `backfills`, so that the next owner goes on. One loop does it, a
 * batch of one connection after one of another: there is no more of it at once, however many there are.
 */
export class FirstSyncs {
  readonly #options: FirstSyncOptions
  readonly #standings: UnitStandings
  readonly #jobs = new Map<string, Job>()
  #waiting: readonly Connection[] = []
  /** By destination: two spaces of one share its rate. */
  readonly #buckets = new Map<string, TokenBucket>()
  readonly #leftOut = new Set<string>()
  /** Reads of stores that are under way. */
  readonly #reading = new Set<Promise<unknown>>()
  readonly #stopping = new AbortController()
  /** A batch that is under way. */
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
    this.#loop = this.#run()
  }

  /**
   * The unit is ours, and its state is there. Resolves when it is known and written which destinations are
   * not told of it, as we see the catalog; or after a second, where Kafka is slow: then that is written soon.
   */
  async acquire(unit: number): Promise<void> {
    this.#standings.acquire(unit)
    await patiently(this.#standings.learn())
    this.#rouse()
  }

  /** The unit is left. Resolves when nothing is read of it, and what was sent is noted. */
  async release(unit: number): Promise<void> {
    this.#standings.leave(unit)
    for (const job of this.#jobs.values()) leave(job, unit)
    if (this.#telling.unit === unit) await patiently(this.#telling.done)
    this.#standings.release(unit)
    await Promise.allSettled(this.#reading)
  }

  /** Another catalog is in force. */
  catalogChanged(): void {
    this.#standings.catalogChanged()
    this.#plan()
    this.#rouse()
  }

  get progress(): readonly FirstSyncProgress[] {
    const progress: FirstSyncProgress[] = []
    for (const connection of this.#waiting) progress.push({ ...connection, state: 'waiting', left: 0 })
    for (const { connection, left } of this.#jobs.values())
      progress.push({ ...connection, state: 'under_way', left: sumOf(left) })
    return progress
  }

  /** All units are left. Resolves when nothing is read of them, and what was sent is noted. */
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

  /** Gives how long there is nothing to do. */
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

  /** Ends early where there is news. */
  async #rest(waitMs: number): Promise<void> {
    if (waitMs === 0 || this.#isRoused) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, Math.min(waitMs, longestRestMs))
    this.#wake = resolve
    await promise
    clearTimeout(timer)
  }

  /** Finds out what there is to be done. */
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
    this.#forgetBuckets()
  }

  /** `undefined`: nothing is to be sent. */
  #withLeft(unit: number, connection: Connection, step: FirstSyncStep): boolean | undefined {
    if (typeof step !== 'string') return step.withLeft
    if (step !== 'go_on') return undefined
    const standing = this.#standings.of(unit, connection)
    return standing?.kind === 'syncing' && standing.withLeft
  }

  #employ(key: string, connection: Connection, units: readonly JobUnit[]): void {
    let job = this.#jobs.get(key)
    if (job === undefined) {
      const nowMs = performance.now()
      job = { connection, startedMs: nowMs, upTo: undefined, units, left: new Map(), sent: 0, notedMs: nowMs }
      this.#jobs.set(key, job)
      void this.#begin(key, job)
    } else {
      job.units = units
      void this.#count(job).catch((error: unknown) => this.#options.observer.failed(error))
    }
  }

  #forgetBuckets(): void {
    const needed = new Set([...this.#jobs.values()].map(({ connection }) => connection.destinationId))
    for (const id of this.#buckets.keys()) if (!needed.has(id)) this.#buckets.delete(id)
  }

  async #begin(key: string, job: Job): Promise<void> {
    const { observer } = this.#options
    try {
      const [upTo] = await Promise.all([this.#beginToFill(job.connection), this.#count(job)])
      if (this.#jobs.get(key) !== job) return
      job.upTo = upTo
      observer.begun(job.connection, { units: job.units.length, left: sumOf(job.left) })
    } catch (error) {
      if (this.#stopping.signal.aborted) return
      observer.failed(error)
      await delay(againAfterMs, undefined, { signal: this.#stopping.signal }).catch(() => undefined)
      if (this.#jobs.get(key) === job) this.#jobs.delete(key)
      this.#isToPlan = true
    }
    this.#rouse()
  }

  #beginToFill({ destinationId, spaceId }: Connection): Promise<number> {
    const { marks, readMarks } = this.#options
    return beginToFill({
      tellBegun: () => marks.tell({ kind: 'begun', destinationId, spaceId }),
      needsBackfill: async () => {
        await readMarks()
        return needsBackfill(marks.marks.of(destinationId, spaceId))
      },
      end: async () => {
        await readMarks()
        return marks.position
      },
      signal: this.#stopping.signal,
    })
  }

  /** How much there is to be sent of units that weren't counted yet. */
  async #count(job: Job): Promise<void> {
    for (const { unit, withLeft } of job.units) {
      if (job.left.has(unit)) continue
      job.left.set(unit, 0)
      const standing = this.#standings.of(unit, job.connection)
      let after = standing?.kind === 'syncing' ? standing.after : null
      do {
        const page = await this.#statesOf(unit, job.connection, { after, withLeft, count: countedAtOnce })
        addTo(job.left, unit, page?.states.length ?? 0)
        after = page?.last ?? null
      } while (after !== null && !this.#stopping.signal.aborted)
    }
  }

  /** Does one piece of work. Gives 0, or how long there is none. */
  async #work(): Promise<number> {
    const nowMs = performance.now()
    let waitMs = Infinity
    for (const [key, job] of this.#jobs) {
      if (job.upTo === undefined) continue
      const bucketMs = this.#bucketOf(job).take(nowMs, 0)
      waitMs = Math.min(waitMs, bucketMs)
      if (bucketMs > 0) continue
      // The others first, next time.
      this.#jobs.delete(key)
      this.#jobs.set(key, job)
      const [next] = job.units
      if (next === undefined) {
        this.#jobs.delete(key)
        continue
      }
      const done = this.#tellSome(job, next, job.upTo)
      this.#telling = { unit: next.unit, done }
      await done
      return 0
    }
    return waitMs
  }

  #bucketOf({ connection: { destinationId } }: Job): TokenBucket {
    const rate = { perSecond: this.#perSecond, burst: 1 }
    const nowMs = performance.now()
    let bucket = this.#buckets.get(destinationId)
    if (bucket === undefined) {
      bucket = new TokenBucket(rate, nowMs)
      this.#buckets.set(destinationId, bucket)
    }
    bucket.setRate(rate, nowMs)
    return bucket
  }

  /** Of all workers together it is the rate that is set. */
  get #perSecond(): number {
    const { perSecond, partitions } = this.#options
    return perSecond * (Math.max(1, this.#standings.count) / partitions)
  }

  /** The next batch of a job, of one unit. */
  async #tellSome(job: Job, { unit, withLeft }: JobUnit, upTo: number): Promise<void> {
    const { connection } = job
    const standing = this.#syncing(unit, connection, {
      kind: 'syncing',
      upTo,
      withLeft,
      after: null,
      sent: 0,
    })
    const count = Math.max(1, Math.min(mostAtOnce, Math.ceil(this.#perSecond / batchesPerSecond)))
    const page = await this.#statesOf(unit, connection, { after: standing.after, withLeft, count })
    if (page === undefined) {
      leave(job, unit)
      return
    }
    await this.#send(job, unit, page.states)
    // It was left, or parted, meanwhile.
    if (this.#standings.of(unit, connection) !== standing) return
    const sent = page.states.length
    addTo(job.left, unit, -sent)
    job.sent += sent
    if (page.last === null) this.#endUnit(job, unit, standing.upTo)
    else this.#goOn(job, unit, { ...standing, after: page.last, sent: standing.sent + sent })
  }

  /** Where the unit is, or else that it begins. */
  #syncing(unit: number, connection: Connection, begin: Syncing): Syncing {
    const standing = this.#standings.of(unit, connection)
    if (standing?.kind === 'syncing') return standing
    void this.#standings.set(unit, connection, begin)
    return begin
  }

  async #send(job: Job, unit: number, states: readonly HeldState[]): Promise<void> {
    if (states.length === 0) return
    const { send, observer } = this.#options
    this.#bucketOf(job).take(performance.now(), states.length)
    await send(unit, job.connection, states)
    observer.sent(job.connection, states.length)
  }

  #goOn(job: Job, unit: number, standing: Syncing): void {
    const nowMs = performance.now()
    const isNoted = nowMs - job.notedMs >= noteEveryMs
    if (isNoted) job.notedMs = nowMs
    void this.#standings.set(unit, job.connection, standing, isNoted)
  }

  #endUnit(job: Job, unit: number, upTo: number): void {
    const { marks, observer } = this.#options
    const { connection, startedMs, sent } = job
    const noted = this.#standings.set(unit, connection, { kind: 'told', upTo })
    leave(job, unit)
    if (job.units.length > 0) return
    this.#jobs.delete(keyOf(connection))
    this.#forgetBuckets()
    void noted.then(() => {
      const isComplete = marks.marks.isComplete(marks.marks.of(connection.destinationId, connection.spaceId))
      observer.ended(connection, { sent, tookMs: Math.round(performance.now() - startedMs), isComplete })
    })
  }

  async #statesOf(
    unit: number,
    { spaceId }: Connection,
    query: Omit<StatesQuery, 'spaceId'>,
  ): Promise<StatesPage | undefined> {
    if (this.#stopping.signal.aborted) return undefined
    const reading = this.#options.statesOf(unit, { spaceId, ...query })
    this.#reading.add(reading)
    try {
      return await reading
    } finally {
      this.#reading.delete(reading)
    }
  }

  #part(connection: Connection, isConnected: boolean): void {
    if (!this.#jobs.delete(keyOf(connection))) return
    const { marks, observer } = this.#options
    observer.stopped(connection)
    if (isConnected) void marks.needsBackfill(connection.destinationId, connection.spaceId)
  }

  #leaveOut(connection: Connection): void {
    const key = keyOf(connection)
    this.#jobs.delete(key)
    // Each of our units says so.
    if (this.#leftOut.has(key)) return
    this.#leftOut.add(key)
    this.#options.observer.leftOut(connection)
  }
}

/** Waits for what is on its way to Kafka, which may be away for as long as it likes. */
async function patiently(work: Promise<void>): Promise<void> {
  await Promise.race([work, delay(patienceMs, undefined, { ref: false })]).catch(() => undefined)
}

function leave(job: Job, unit: number): void {
  job.units = job.units.filter((one) => one.unit !== unit)
  job.left.delete(unit)
}

function addTo(left: Map<number, number>, unit: number, count: number): void {
  const before = left.get(unit)
  if (before !== undefined) left.set(unit, Math.max(0, before + count))
}

function sumOf(left: ReadonlyMap<number, number>): number {
  let sum = 0
  for (const one of left.values()) sum += one
  return sum
}
