import { setTimeout as delay } from 'node:timers/promises'
import { restAfter } from '../../async/rest.ts'
import type { StatePlace, StatesPage, StatesQuery } from './states-page.ts'

export type ValueCounterOptions = {
  /** Reads a page of a unit's states. Resolves to `undefined` if this member doesn't own the unit. */
  readonly statesOf: (unit: number, query: StatesQuery) => Promise<StatesPage | undefined>
  /** The spaces of the catalog. */
  readonly spaces: () => readonly string[]
  readonly onFailed: (error: unknown) => void
  /** How long the pauses are, in milliseconds. */
  readonly pauses?: Pauses
}

/**
 * `pageMs`: at least so long between two pages. `againMs`: until a unit is counted again. `mostOfTime`: pages
 * are read for at most this part of the time, so that deliveries don't feel it.
 */
type Pauses = { readonly pageMs: number; readonly againMs: number; readonly mostOfTime: number }

/** How many users have a value of a space, by property: members of audiences, and values of traits. */
export type SpaceCount = {
  readonly spaceId: string
  /** How many of the member's units were counted. */
  readonly units: number
  /** When the oldest of them was counted, in epoch milliseconds; 0: none was. */
  readonly atMs: number
  readonly values: ReadonlyMap<string, number>
}

type Counted = { readonly atMs: number; readonly values: ReadonlyMap<string, number> }
/** `atMs`: when all of its spaces had been counted; 0: not yet. */
type UnitCount = { atMs: number; readonly ofSpace: Map<string, Counted> }

const pageSize = 500
const usualPauses: Pauses = { pageMs: 50, againMs: 60_000, mostOfTime: 0.02 }

/**
 * Counts the values of spaces in the units of a member, again and again, and slowly: a store has no count of
 * its own, and one that is kept with each write would cost each change.
 */
export class ValueCounter {
  readonly #options: ValueCounterOptions
  readonly #pauses: Pauses
  /** The counts of the units that this member owns. */
  readonly #units = new Map<number, UnitCount>()
  readonly #stopping = new AbortController()
  #reading: Promise<unknown> = Promise.resolve()
  readonly #running: Promise<void>

  constructor(options: ValueCounterOptions) {
    this.#options = options
    this.#pauses = options.pauses ?? usualPauses
    this.#running = this.#run()
  }

  /** Adds a unit whose states are ready. */
  acquire(unit: number): void {
    this.#units.set(unit, { atMs: 0, ofSpace: new Map() })
  }

  /** Leaves a unit. Resolves when none of its states are being read any more. */
  async release(unit: number): Promise<void> {
    this.#units.delete(unit)
    await this.#reading
  }

  /** Returns what was counted, of the spaces of the catalog. */
  counts(): readonly SpaceCount[] {
    return this.#options.spaces().map((spaceId) => {
      const counted = [...this.#units.values()].flatMap(({ ofSpace }) => ofSpace.get(spaceId) ?? [])
      const values = new Map<string, number>()
      for (const one of counted)
        for (const [property, count] of one.values) values.set(property, (values.get(property) ?? 0) + count)
      const atMs = counted.length === 0 ? 0 : Math.min(...counted.map((one) => one.atMs))
      return { spaceId, units: counted.length, atMs, values }
    })
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const next = this.#next()
      try {
        if (next !== undefined) await this.#countUnit(next)
      } catch (error) {
        this.#options.onFailed(error)
        await this.#rest(this.#pauses.againMs)
      }
      await this.#rest(next === undefined ? Math.min(1_000, this.#pauses.againMs) : this.#pauses.pageMs)
    }
  }

  /** Returns the unit whose counts are the oldest, if they are old enough. */
  #next(): number | undefined {
    let oldest: { readonly unit: number; readonly atMs: number } | undefined
    for (const [unit, { atMs }] of this.#units)
      if (oldest === undefined || atMs < oldest.atMs) oldest = { unit, atMs }
    return oldest !== undefined && Date.now() - oldest.atMs >= this.#pauses.againMs ? oldest.unit : undefined
  }

  async #countUnit(unit: number): Promise<void> {
    const counted = this.#units.get(unit)
    if (counted === undefined) return
    const spaces = new Set(this.#options.spaces())
    for (const spaceId of counted.ofSpace.keys()) if (!spaces.has(spaceId)) counted.ofSpace.delete(spaceId)
    for (const spaceId of spaces) {
      const values = await this.#count(unit, spaceId, counted)
      if (values === undefined) break
      counted.ofSpace.set(spaceId, { atMs: Date.now(), values })
      await this.#rest(this.#pauses.pageMs)
    }
    // A unit that can't be read any more is left in a moment.
    counted.atMs = Date.now()
  }

  /** Counts the values of a space in a unit. Resolves to `undefined` if the unit was left meanwhile. */
  async #count(
    unit: number,
    spaceId: string,
    counted: UnitCount,
  ): Promise<ReadonlyMap<string, number> | undefined> {
    const values = new Map<string, number>()
    for (let after: StatePlace | null = null; ;) {
      const startedMs = performance.now()
      const page = await this.#page(unit, { spaceId, after, count: pageSize, withLeft: false })
      // The unit may have been left, and be back with another store.
      if (page === undefined || this.#units.get(unit) !== counted) return undefined
      for (const { stateKey } of page.states)
        values.set(stateKey.property, (values.get(stateKey.property) ?? 0) + 1)
      if (page.last === null) return values
      after = page.last
      const { pageMs: leastMs, againMs: mostMs, mostOfTime: share } = this.#pauses
      await this.#rest(restAfter(performance.now() - startedMs, { leastMs, mostMs, share }))
    }
  }

  async #page(unit: number, query: StatesQuery): Promise<StatesPage | undefined> {
    if (!this.#units.has(unit) || this.#stopping.signal.aborted) return undefined
    const reading = this.#options.statesOf(unit, query)
    this.#reading = reading.catch(() => undefined)
    return reading
  }

  async #rest(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#stopping.signal }).catch(() => undefined)
  }
}
