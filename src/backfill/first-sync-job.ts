import type { HeldState, StatesPage, StatesQuery } from '../audience/store/states-page.ts'
import { beginToFill } from './begin.ts'
import type { DestinationRates } from './destination-rates.ts'
import type { FirstSyncOptions } from './first-sync-ports.ts'
import { type Connection, needsBackfill } from './marks.ts'
import type { Syncing } from './standing.ts'
import type { UnitStandings } from './unit-standings.ts'

/**
 * A unit of this worker whose states are still to be sent. `withLeft`: true if states of users who have left
 * are sent too.
 */
export type JobUnit = { readonly unit: number; readonly withLeft: boolean }

/** The options that all jobs share. */
export type FirstSyncJobOptions = Pick<FirstSyncOptions, 'marks' | 'readMarks' | 'send' | 'observer'> & {
  readonly standings: UnitStandings
  readonly rates: DestinationRates
  /**
   * Reads a page of states. Resolves with `undefined` if this worker doesn't own the unit any more, or if the
   * worker stops.
   */
  readonly statesOf: (unit: number, query: StatesQuery) => Promise<StatesPage | undefined>
  readonly stopping: AbortSignal
  /** Called when the states of all units of a job have been sent. */
  readonly onEnded: (connection: Connection) => void
}

const batchesPerSecond = 4
const mostAtOnce = 500
const countedAtOnce = 1_000
const noteEveryMs = 1_000

/**
 * Sends to one destination those states of one space that this worker's units hold. Keeps the progress of
 * each unit.
 */
export class FirstSyncJob {
  readonly connection: Connection
  readonly #options: FirstSyncJobOptions
  readonly #startedMs = performance.now()
  #upTo: number | undefined
  /** The units whose states are still to be sent, in the order in which they are sent. */
  #units: readonly JobUnit[]
  /** The number of Identifies that are still to be written, by unit. */
  readonly #left = new Map<number, number>()
  #sent = 0
  #notedMs = this.#startedMs

  constructor(connection: Connection, units: readonly JobUnit[], options: FirstSyncJobOptions) {
    this.connection = connection
    this.#units = units
    this.#options = options
  }

  /** The number of units whose states are still to be sent. */
  get unitCount(): number {
    return this.#units.length
  }

  /**
   * The number of Identifies that are still to be written. While the states of a unit are being counted, only
   * the states that were counted so far are included.
   */
  get left(): number {
    let sum = 0
    for (const one of this.#left.values()) sum += one
    return sum
  }

  /**
   * An offset of `backfills`: the job makes up for all marks below it. `undefined` while the job is being
   * prepared.
   */
  get upTo(): number | undefined {
    return this.#upTo
  }

  /** The unit whose states are sent next. */
  get next(): JobUnit | undefined {
    return this.#units[0]
  }

  /**
   * Writes to `backfills` that the first sync begins, and counts the states that have to be sent. Resolves
   * with an offset of `backfills`: the job makes up for all marks below it.
   */
  async prepare(): Promise<number> {
    const [upTo] = await Promise.all([this.#beginToFill(), this.count()])
    return upTo
  }

  /**
   * Lets the job send states from now on. `upTo` is an offset of `backfills`: the job makes up for all marks
   * below it.
   */
  begin(upTo: number): void {
    this.#upTo = upTo
  }

  /** Replaces the units whose states are still to be sent. */
  setUnits(units: readonly JobUnit[]): void {
    this.#units = units
  }

  /** Removes a unit from the job. No more states of the unit are sent. */
  leave(unit: number): void {
    this.#units = this.#units.filter((one) => one.unit !== unit)
    this.#left.delete(unit)
  }

  /** Counts the states that have to be sent, for each unit whose states haven't been counted yet. */
  async count(): Promise<void> {
    const { standings, stopping } = this.#options
    for (const { unit, withLeft } of this.#units) {
      if (this.#left.has(unit)) continue
      this.#left.set(unit, 0)
      const standing = standings.of(unit, this.connection)
      let after = standing?.kind === 'syncing' ? standing.after : null
      do {
        const page = await this.#statesOf(unit, { after, withLeft, count: countedAtOnce })
        this.#addLeft(unit, page?.states.length ?? 0)
        after = page?.last ?? null
      } while (after !== null && !stopping.aborted)
    }
  }

  /**
   * Sends the next batch of states, from one unit. `upTo` is an offset of `backfills`: the job makes up for
   * all marks below it.
   */
  async tellSome({ unit, withLeft }: JobUnit, upTo: number): Promise<void> {
    const { standings, rates } = this.#options
    const { connection } = this
    const begin: Syncing = { kind: 'syncing', upTo, withLeft, after: null, sent: 0 }
    const standing = this.#syncing(unit, begin)
    const count = Math.max(1, Math.min(mostAtOnce, Math.ceil(rates.perSecond / batchesPerSecond)))
    const page = await this.#statesOf(unit, { after: standing.after, withLeft, count })
    if (page === undefined) {
      this.leave(unit)
      return
    }
    await this.#send(unit, page.states)
    // During the write, this worker has left the unit, or the destination was disconnected.
    if (standings.of(unit, connection) !== standing) return
    const sent = page.states.length
    this.#addLeft(unit, -sent)
    this.#sent += sent
    if (page.last === null) this.#endUnit(unit, standing.upTo)
    else this.#goOn(unit, { ...standing, after: page.last, sent: standing.sent + sent })
  }

  #beginToFill(): Promise<number> {
    const { marks, readMarks, stopping } = this.#options
    const { destinationId, spaceId } = this.connection
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
      signal: stopping,
    })
  }

  /**
   * Returns the progress of a unit's first sync. If no first sync is under way, starts one with the standing
   * `begin`.
   */
  #syncing(unit: number, begin: Syncing): Syncing {
    const { standings } = this.#options
    const standing = standings.of(unit, this.connection)
    if (standing?.kind === 'syncing') return standing
    void standings.set(unit, this.connection, begin)
    return begin
  }

  async #send(unit: number, states: readonly HeldState[]): Promise<void> {
    if (states.length === 0) return
    const { send, observer, rates } = this.#options
    rates.take(this.connection.destinationId, states.length)
    await send(unit, this.connection, states)
    observer.sent(this.connection, states.length)
  }

  #goOn(unit: number, standing: Syncing): void {
    const nowMs = performance.now()
    const isNoted = nowMs - this.#notedMs >= noteEveryMs
    if (isNoted) this.#notedMs = nowMs
    void this.#options.standings.set(unit, this.connection, standing, isNoted)
  }

  #endUnit(unit: number, upTo: number): void {
    const { standings, marks, observer, onEnded } = this.#options
    const { connection } = this
    const noted = standings.set(unit, connection, { kind: 'told', upTo })
    this.leave(unit)
    if (this.#units.length > 0) return
    onEnded(connection)
    const sent = this.#sent
    void noted.then(() => {
      const isComplete = marks.marks.isComplete(marks.marks.of(connection.destinationId, connection.spaceId))
      observer.ended(connection, {
        sent,
        tookMs: Math.round(performance.now() - this.#startedMs),
        isComplete,
      })
    })
  }

  #statesOf(unit: number, query: Omit<StatesQuery, 'spaceId'>): Promise<StatesPage | undefined> {
    return this.#options.statesOf(unit, { spaceId: this.connection.spaceId, ...query })
  }

  #addLeft(unit: number, count: number): void {
    const before = this.#left.get(unit)
    if (before !== undefined) this.#left.set(unit, Math.max(0, before + count))
  }
}
