import type { HeldRecord, RecordContent } from '../../message/held-record.ts'
import type { Judgement, WaitingDelivery } from '../../message/judgement.ts'
import { parseJson } from '../../message/json/json.ts'
import { AudienceIntake, type AudienceIntakeOptions } from './audience-intake.ts'
import type { AudiencePorts, RestoreProgress } from '../audience-ports.ts'
import { Checkpoint } from '../store/checkpoint.ts'
import { KeyFilter } from '../store/key-filter.ts'
import { readDeletions, restore } from './restore.ts'
import type { StatesPage, StatesQuery } from '../store/states-page.ts'
import type { StoreOperation } from '../store/store.ts'
import { readSyncFloors } from '../syncs/sync-floors.ts'
import { AudienceUnit } from './unit.ts'
import { clearStaged, UnitStores, type UnitStoresOptions } from '../store/unit-stores.ts'

export type AudienceOptions = UnitStoresOptions &
  AudienceIntakeOptions & {
    readonly ports: AudiencePorts
    /** The interval between two checks for expired syncs, in milliseconds. */
    readonly tickEveryMs?: number
  }

/** The states of audiences and traits, and the deletion floors, in the units that this member owns. */
export type AudienceUnits = {
  /**
   * Opens the unit's store and adds all later records of `memberships` to it. Call this method once the
   * previous owners of the unit have finished. If this method rejects, it may be called again.
   */
  prepare(unit: number): Promise<void>
  /**
   * Leaves the unit, because the unit goes to another owner or because the worker stops. Waits for the writes
   * in flight, and closes the store cleanly.
   */
  release(unit: number): Promise<void>
  /**
   * Accepts a record of `audience-changes`, with its value as JSON. Later, the record is settled, refused,
   * moved to the unit of its user, or left to the next owner.
   */
  acceptChange(record: HeldRecord, content: RecordContent): void
  /** Accepts a record of `memberships`. Call this method in the order of the offsets. */
  acceptState(record: HeldRecord, content: RecordContent): void
  /** Accepts a record of `deletions`, with its value as JSON. */
  acceptDeletion(record: HeldRecord, content: RecordContent): void
  judge(waiting: WaitingDelivery): Promise<Judgement>
  /** Returns true if `judge` must also be called for deliveries that aren't an Identify of one property. */
  hasDeletions(unit: number): boolean
  /**
   * Returns true if data of a user in a space may have been deleted. The result may wrongly be true, but it
   * is never wrongly false.
   */
  mayBeDeleted(unit: number, userId: string, spaceId: string): boolean
  /** Returns false if `judge` certainly says `send` for an event. Reads nothing from the store. */
  mayBeSuppressed(event: Pick<WaitingDelivery, 'unit' | 'sourceId' | 'body'>): boolean
  /** Returns a number that grows with each deletion of a user in a unit. */
  deletionsOf(unit: number): number
  /**
   * Returns a page of the states that a unit holds of a space, as they are on disk. Returns `undefined` if
   * this member doesn't own the unit.
   */
  statesOf(unit: number, query: StatesQuery): Promise<StatesPage | undefined>
  /** Leaves the items of lost units to the new owners of these units, except items that have been started. */
  letGoAbandoned(): void
  stop(): Promise<void>
  readonly progress: readonly RestoreProgress[]
}

export function createAudienceUnits(options: AudienceOptions): AudienceUnits {
  return new OpenUnits(options)
}

const tickEveryMs = 1_000
/**
 * The size in bits of the filter of deletion floors: 128 KiB for each unit. If a unit has 100,000 deleted
 * users, the filter lets through one in ten of the users without a floor. The store is then searched for
 * these users without finding a floor.
 */
const deletionBits = 2 ** 20

class OpenUnits implements AudienceUnits {
  readonly #options: AudienceOptions
  readonly #stores: UnitStores
  readonly #intake: AudienceIntake
  readonly #units = new Map<number, AudienceUnit>()
  /** The units whose state is being prepared, without those that were left in the meantime. */
  readonly #preparing = new Set<number>()
  /** Units with deletion floors that were left. Requests of a left unit may still be under way. */
  readonly #leftWithDeletions = new Set<number>()
  readonly #progress = new Map<number, RestoreProgress>()
  readonly #ticking: NodeJS.Timeout

  constructor(options: AudienceOptions) {
    this.#options = options
    this.#stores = new UnitStores(options)
    this.#intake = new AudienceIntake(options)
    this.#ticking = setInterval(() => {
      for (const unit of this.#units.values()) unit.tick()
    }, options.tickEveryMs ?? tickEveryMs)
    this.#ticking.unref()
  }

  get progress(): readonly RestoreProgress[] {
    return [...this.#progress.values()]
  }

  async prepare(unit: number): Promise<void> {
    if (this.#units.has(unit)) return
    const { ports, partitions } = this.#options
    const startedMs = ports.monotonicMs()
    this.#preparing.add(unit)
    try {
      await this.#stores.clear()
      const range = await ports.rangeOfStates(unit)
      const { store, position, leaderEpoch, mistrust } = await this.#stores.open(unit, range)
      // If the unit was left before its store was open, `release` could not close the store.
      if (!this.#preparing.has(unit)) throw new Error(`unit ${unit} was left before it was restored`)
      await clearStaged(store)
      const deletions = new KeyFilter(deletionBits)
      await readDeletions(store, deletions)
      const checkpoint = new Checkpoint(position ?? range.start, leaderEpoch)
      const from = checkpoint.position
      let count = 0
      const progress = (records: number, at: number): void => {
        count = records
        this.#progress.set(unit, { unit, records, from, at, end: range.end })
      }
      progress(0, from)
      const metaOf = (at: number): StoreOperation => this.#stores.metaOf(unit, at, checkpoint)
      const outOfOrder = await restore({
        store,
        isEmpty: position === undefined,
        records: ports.readStates(unit, from),
        checkpoint,
        deletions,
        meta: metaOf,
        onProgress: progress,
      })
      await store.write([metaOf(checkpoint.position)])
      const syncFloors = await readSyncFloors(store)
      this.#stores.handOver(unit, store)
      this.#leftWithDeletions.delete(unit)
      this.#units.set(
        unit,
        new AudienceUnit({
          unit,
          partitions,
          store,
          checkpoint,
          deletions,
          syncFloors,
          meta: metaOf,
          outOfOrder,
          ports,
        }),
      )
      const tookMs = Math.round(ports.monotonicMs() - startedMs)
      ports.observer.restored({ unit, mistrust, records: count, tookMs })
    } catch (error) {
      await this.#stores.close(unit)
      throw error
    } finally {
      this.#preparing.delete(unit)
      this.#progress.delete(unit)
    }
  }

  async release(unit: number): Promise<void> {
    this.#preparing.delete(unit)
    const open = this.#units.get(unit)
    this.#units.delete(unit)
    if (open?.hasDeletions === true) this.#leftWithDeletions.add(unit)
    await open?.close()
    await this.#stores.close(unit)
  }

  letGoAbandoned(): void {
    for (const unit of this.#units.values()) unit.letGoAbandoned()
  }

  async stop(): Promise<void> {
    clearInterval(this.#ticking)
    const units = new Set([...this.#preparing, ...this.#units.keys(), ...this.#stores.units])
    await Promise.all([...units].map((unit) => this.release(unit)))
  }

  acceptChange(record: HeldRecord, content: RecordContent): void {
    const unit = this.#unitOf(record)
    if (unit !== undefined) this.#intake.acceptChange(unit, record, content)
  }

  acceptState(record: HeldRecord, content: RecordContent): void {
    const unit = this.#unitOf(record)
    if (unit !== undefined) this.#intake.acceptState(unit, record, content)
  }

  acceptDeletion(record: HeldRecord, content: RecordContent): void {
    const unit = this.#unitOf(record)
    if (unit !== undefined) this.#intake.acceptDeletion(unit, record, content)
  }

  async judge(waiting: WaitingDelivery): Promise<Judgement> {
    const { sourceId, firstSeenMs, property, body, isUncertain } = waiting
    const unit = this.#units.get(waiting.unit)
    if (unit === undefined) return { kind: 'send' }
    if (property !== undefined) return unit.judgeProperty(property, isUncertain)
    if (!unit.hasDeletions) return { kind: 'send' }
    const userId = userOf(body)
    if (userId === undefined) return { kind: 'send' }
    const isDeleted = await unit.isDeleted(userId, sourceId, firstSeenMs)
    return { kind: isDeleted ? 'suppressed' : 'send' }
  }

  mayBeSuppressed({ unit, sourceId, body }: Pick<WaitingDelivery, 'unit' | 'sourceId' | 'body'>): boolean {
    if (!this.hasDeletions(unit)) return false
    const userId = userOf(body)
    return userId !== undefined && this.#units.get(unit)?.mayBeDeleted(userId, sourceId) === true
  }

  hasDeletions(unit: number): boolean {
    return this.#units.get(unit)?.hasDeletions ?? false
  }

  deletionsOf(unit: number): number {
    return this.#units.get(unit)?.deletions ?? 0
  }

  mayBeDeleted(unit: number, userId: string, spaceId: string): boolean {
    return this.#units.get(unit)?.mayBeDeleted(userId, spaceId) ?? this.#leftWithDeletions.has(unit)
  }

  async statesOf(unit: number, query: StatesQuery): Promise<StatesPage | undefined> {
    return this.#units.get(unit)?.statesOf(query)
  }

  /**
   * Returns the unit of a record. If this member no longer owns the unit, gives the record back, so that the
   * next owner processes it.
   */
  #unitOf(record: HeldRecord): AudienceUnit | undefined {
    const unit = this.#units.get(record.partition)
    if (unit === undefined || record.isAbandoned) {
      record.giveBack()
      return undefined
    }
    return unit
  }
}

/**
 * Returns the user of a message, to find out whether the user was deleted. Returns `undefined` for a
 * `delete`, because a deletion request must not stop the `delete` that it caused.
 */
function userOf(body: Buffer): string | undefined {
  const parsed = parseJson(body.toString())
  if (!parsed.ok || typeof parsed.value !== 'object' || parsed.value === null) return undefined
  const { type, userId }: { type?: unknown; userId?: unknown } = parsed.value
  return type !== 'delete' && typeof userId === 'string' && userId !== '' ? userId : undefined
}
