import { type Connections, joinedBy, type Joined, type ConnectionState, keyOf } from './connections.ts'
import { type FirstSyncStep, firstSyncStep } from './first-sync-step.ts'
import type { MarkKeeper } from './mark-keeper.ts'
import type { Connection } from './marks.ts'
import type { Standing } from './standing.ts'

export type UnitStandingsOptions = {
  /** False: what is connected later is marked, and left out. */
  readonly isWanted: boolean
  /** The catalog in force. */
  readonly catalog: () => Connections
  readonly marks: Pick<MarkKeeper, 'marks' | 'tell' | 'needsBackfill'>
  /** Reads the log of marks to its end. Throws where Kafka doesn't answer. */
  readonly readMarks: () => Promise<void>
  readonly onLearnt: () => void
  /** What changes in one of our units isn't told to the destination any more. */
  readonly onParted: (connection: Connection, isConnected: boolean) => void
  readonly onLeftOut: (connection: Connection) => void
  readonly onFailed: (error: unknown) => void
}

/** A unit of ours. */
type Owned = {
  readonly unit: number
  /**
   * By `keyOf`; `undefined` until the log was read since the unit is ours. From then on only we change it.
   */
  standings: Map<string, Connection & { readonly standing: Standing }> | undefined
  /** Whether a connection that nothing was written of is a new one. */
  isTracked: boolean
  /** What the catalogs said that were in force until then. */
  readonly seen: ReadonlyMap<string, Joined>[]
  isLeaving: boolean
}

/** What is to be done for a connection in a unit. */
export type DueStep = { readonly unit: number; readonly connection: Connection; readonly step: FirstSyncStep }

/**
 * How destinations stand to what our units hold, and what of that follows from each version of the catalog.
 */
export class UnitStandings {
  readonly #options: UnitStandingsOptions
  readonly #owned = new Map<number, Owned>()
  /** As the catalog in force says. */
  #joined: ReadonlyMap<string, Joined>

  constructor(options: UnitStandingsOptions) {
    this.#options = options
    this.#joined = joinedBy(options.catalog())
  }

  /** How many units are ours. */
  get count(): number {
    return this.#owned.size
  }

  acquire(unit: number): void {
    const seen = [this.#joined]
    this.#owned.set(unit, { unit, standings: undefined, isTracked: false, seen, isLeaving: false })
  }

  /** Nothing more is due in it. */
  leave(unit: number): void {
    const owned = this.#owned.get(unit)
    if (owned !== undefined) owned.isLeaving = true
  }

  /** What is noted last is how far the unit is; its next owner goes on from there. */
  release(unit: number): void {
    for (const { standing, ...connection } of this.#owned.get(unit)?.standings?.values() ?? [])
      if (standing.kind === 'syncing') void this.#write(unit, connection, standing)
    this.#owned.delete(unit)
  }

  releaseAll(): void {
    for (const unit of this.#owned.keys()) this.release(unit)
  }

  /**
   * Of units that are newly ours: what their owners before have written, and what follows for the catalogs
   * since. Resolves when that is written too.
   */
  async learn(): Promise<void> {
    const news = [...this.#owned.values()].filter(({ standings }) => standings === undefined)
    if (news.length === 0) return
    await this.#options.readMarks()
    const written: Promise<unknown>[] = []
    for (const owned of news) {
      // Left, or learnt, meanwhile.
      if (this.#owned.get(owned.unit) !== owned || owned.standings !== undefined) continue
      owned.isTracked = this.#options.marks.marks.isTracked(owned.unit)
      owned.standings = this.#standingsOf(owned.unit)
      for (const joined of owned.seen.splice(0)) written.push(...this.#review(owned, owned.standings, joined))
    }
    this.#options.onLearnt()
    await Promise.all(written)
  }

  /** Whether there is something to `learn`. */
  get hasNews(): boolean {
    for (const { standings } of this.#owned.values()) if (standings === undefined) return true
    return false
  }

  /** What is parted is known to be so from here on, whether it is written or not. */
  catalogChanged(): void {
    this.#joined = joinedBy(this.#options.catalog())
    for (const owned of this.#owned.values()) {
      if (owned.standings === undefined) owned.seen.push(this.#joined)
      else void this.#review(owned, owned.standings, this.#joined)
    }
  }

  /** By the catalog in force. */
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

  /** Of a unit that is ours. Without `isNoted` it is written with what follows, or when the unit is left. */
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

  /** Does at once what a version of the catalog asks for. Gives what is being written. */
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
    // Behind what was there before: as long as the log hasn't this one, the next owner looks at that anew.
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
        // The mark first: an operator goes by it.
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
