import { type Connections, joinedBy, type Joined, type ConnectionState, keyOf } from './connected-spaces.ts'
import { type FirstSyncStep, firstSyncStep } from './first-sync-step.ts'
import type { MarkKeeper } from './mark-keeper.ts'
import type { Connection } from './marks.ts'
import type { Standing } from './standing.ts'

export type UnitStandingsOptions = {
  /**
   * False if first syncs are off. In that case, a destination that is connected later gets a mark and no
   * first sync.
   */
  readonly isWanted: boolean
  readonly catalog: () => Connections
  readonly marks: Pick<MarkKeeper, 'marks' | 'tell' | 'needsBackfill'>
  /** Reads `backfills` to its end. Rejects if Kafka doesn't answer. */
  readonly readMarks: () => Promise<void>
  readonly onLearnt: () => void
  /**
   * Called when a destination gets no more changes of one of this worker's units. `isConnected`: true if the
   * catalog still connects the destination to the space, but one of them is switched off.
   */
  readonly onParted: (connection: Connection, isConnected: boolean) => void
  readonly onLeftOut: (connection: Connection) => void
  readonly onFailed: (error: unknown) => void
}

/** A unit that this worker owns. */
type Owned = {
  readonly unit: number
  /**
   * The standings, by the key of their connection (`keyOf`). `undefined` until `backfills` has been read
   * after the unit was acquired. After that, only this worker changes the standings.
   */
  standings: Map<string, Connection & { readonly standing: Standing }> | undefined
  /** True if a connection without a standing is new. */
  isTracked: boolean
  /** The connections in each version of the catalog that was in force before `backfills` had been read. */
  readonly seen: ReadonlyMap<string, Joined>[]
  isLeaving: boolean
}

export type DueStep = { readonly unit: number; readonly connection: Connection; readonly step: FirstSyncStep }

/**
 * Keeps the standings of all destinations for the units of this worker, and applies each new version of the
 * catalog to the standings.
 */
export class UnitStandings {
  readonly #options: UnitStandingsOptions
  readonly #owned = new Map<number, Owned>()
  /** The connections in the catalog in force. */
  #joined: ReadonlyMap<string, Joined>

  constructor(options: UnitStandingsOptions) {
    this.#options = options
    this.#joined = joinedBy(options.catalog())
  }

  /** The number of units that this worker owns. */
  get count(): number {
    return this.#owned.size
  }

  acquire(unit: number): void {
    const seen = [this.#joined]
    this.#owned.set(unit, { unit, standings: undefined, isTracked: false, seen, isLeaving: false })
  }

  /** Remembers that this worker is about to leave a unit, so that no more steps are due in the unit. */
  leave(unit: number): void {
    const owned = this.#owned.get(unit)
    if (owned !== undefined) owned.isLeaving = true
  }

  /**
   * Starts to write the progress of the unit's running first syncs, so that the next owner continues from
   * there. Then forgets the unit.
   */
  release(unit: number): void {
    for (const { standing, ...connection } of this.#owned.get(unit)?.standings?.values() ?? [])
      if (standing.kind === 'syncing') void this.#write(unit, connection, standing)
    this.#owned.delete(unit)
  }

  releaseAll(): void {
    for (const unit of this.#owned.keys()) this.release(unit)
  }

  /**
   * Loads the standings of newly acquired units. Then applies all versions of the catalog that have come
   * since each unit was acquired. Resolves once Kafka has the new standings.
   */
  async learn(): Promise<void> {
    const news = [...this.#owned.values()].filter(({ standings }) => standings === undefined)
    if (news.length === 0) return
    await this.#options.readMarks()
    const written: Promise<unknown>[] = []
    for (const owned of news) {
      // During the read, this worker has left the unit, or its standings were loaded by another call.
      if (this.#owned.get(owned.unit) !== owned || owned.standings !== undefined) continue
      owned.isTracked = this.#options.marks.marks.isTracked(owned.unit)
      owned.standings = this.#standingsOf(owned.unit)
      for (const joined of owned.seen.splice(0)) written.push(...this.#review(owned, owned.standings, joined))
    }
    this.#options.onLearnt()
    await Promise.all(written)
  }

  /** True if `learn` has standings to load. */
  get hasNews(): boolean {
    for (const { standings } of this.#owned.values()) if (standings === undefined) return true
    return false
  }

  /**
   * Applies the new catalog. From then on, a disconnected destination is treated as disconnected, even before
   * Kafka has the record of its standing.
   */
  catalogChanged(): void {
    this.#joined = joinedBy(this.#options.catalog())
    for (const owned of this.#owned.values()) {
      if (owned.standings === undefined) owned.seen.push(this.#joined)
      else void this.#review(owned, owned.standings, this.#joined)
    }
  }

  /** Yields the steps that are due according to the catalog in force. */
  *due(): IterableIterator<DueStep> {
    for (const [key, { connectionState, ...connection }] of this.#joined) {
      for (const { unit, standings, isLeaving } of this.#owned.values()) {
        if (standings === undefined || isLeaving) continue
        yield {
          unit,
          connection,
          step: this.#stepOf(connection, connectionState, standings.get(key)?.standing, true),
        }
      }
    }
  }

  of(unit: number, connection: Connection): Standing | undefined {
    return this.#owned.get(unit)?.standings?.get(keyOf(connection))?.standing
  }

  /**
   * Sets a standing in a unit of this worker. If `isNoted` is false, the standing isn't written to Kafka now.
   * A later call with `isNoted` writes the standing of that call. Without a later call, a standing of kind
   * `syncing` is written when this worker leaves the unit.
   */
  set(unit: number, connection: Connection, standing: Standing, isNoted = true): Promise<unknown> {
    const { destinationId, spaceId } = connection
    const standings = this.#owned.get(unit)?.standings
    if (standings === undefined) return Promise.resolve()
    standings.set(keyOf(connection), { destinationId, spaceId, standing })
    return isNoted ? this.#write(unit, connection, standing) : Promise.resolve()
  }

  #standingsOf(unit: number): NonNullable<Owned['standings']> {
    const standings: Owned['standings'] = new Map()
    for (const { destinationId, spaceId, units } of this.#options.marks.marks.all()) {
      const standing = units.get(unit)?.standing
      const connection = { destinationId, spaceId }
      if (standing !== undefined) standings.set(keyOf(connection), { ...connection, standing })
    }
    return standings
  }

  /** Applies a version of the catalog to a unit. Returns the writes to Kafka that this has started. */
  #review(
    owned: Owned,
    standings: NonNullable<Owned['standings']>,
    joined: ReadonlyMap<string, Joined>,
  ): readonly Promise<unknown>[] {
    const { unit, isTracked } = owned
    const written: Promise<unknown>[] = []
    for (const [key, { standing, ...connection }] of standings) {
      if (joined.has(key)) continue
      const step = this.#stepOf(connection, 'none', standing, isTracked)
      written.push(this.#apply(unit, connection, step, false))
    }
    for (const [key, { connectionState, ...connection }] of joined) {
      const step = this.#stepOf(connection, connectionState, standings.get(key)?.standing, isTracked)
      written.push(this.#apply(unit, connection, step, true))
    }
    // The `tracked` record is written after the standings of the present connections. If the topic doesn't
    // have this record, the next owner decides about these connections again.
    if (!isTracked) written.push(this.#reported(this.#options.marks.tell({ kind: 'tracked', unit })))
    owned.isTracked = true
    return written
  }

  #stepOf(
    { destinationId, spaceId }: Connection,
    connectionState: ConnectionState,
    standing: Standing | undefined,
    isTracked: boolean,
  ): FirstSyncStep {
    const { marks } = this.#options.marks
    const { isWanted } = this.#options
    const isComplete = (): boolean => marks.isComplete(marks.of(destinationId, spaceId))
    return firstSyncStep({ connectionState, standing, isTracked, isComplete, isWanted })
  }

  #apply(unit: number, connection: Connection, step: FirstSyncStep, isConnected: boolean): Promise<unknown> {
    const { marks, onParted, onLeftOut } = this.#options
    switch (step) {
      case 'assume_told':
        return this.set(unit, connection, { kind: 'told', upTo: 0 })
      case 'note_new':
        return this.set(unit, connection, { kind: 'new' })
      case 'part':
        onParted(connection, isConnected)
        return this.set(unit, connection, { kind: 'parted' })
      case 'leave_out':
        // The mark is written before the standing, because the mark shows operators the need for a backfill.
        void marks.needsBackfill(connection.destinationId, connection.spaceId)
        onLeftOut(connection)
        return this.set(unit, connection, { kind: 'left_out' })
      default:
        return Promise.resolve()
    }
  }

  #write(unit: number, { destinationId, spaceId }: Connection, standing: Standing): Promise<unknown> {
    const mark = { kind: 'unit', destinationId, spaceId, unit, standing } as const
    return this.#reported(this.#options.marks.tell(mark))
  }

  #reported(telling: Promise<unknown>): Promise<unknown> {
    return telling.catch((error: unknown) => this.#options.onFailed(error))
  }
}
