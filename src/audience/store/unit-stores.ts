import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { parseJson } from '../../message/json/json.ts'
import type { AudiencePorts } from '../audience-ports.ts'
import { levelStores, type StateStore, type StoreOperation, type Stores } from './store.ts'
import { anyStaged, metaKey } from './store-keys.ts'

export type UnitStoresOptions = {
  /** The folder that contains a folder for each unit's store. */
  readonly folder: string
  readonly partitions: number
  /**
   * The identity of the log from which the stores are built: the cluster and the topic `memberships`. A store
   * of another log is not trusted.
   */
  readonly logId: string
  /**
   * The age up to which a store is trusted. This is `delete.retention.ms`, the time for which Kafka keeps
   * tombstones. An older store may have missed tombstones.
   */
  readonly trustedForMs: number
  readonly ports: Pick<AudiencePorts, 'firstStateMs' | 'haveStatesDiverged' | 'now'>
  /** The implementation of stores. By default, stores are on disk. */
  readonly stores?: Stores
}

/**
 * The offsets between which a unit's partition of `memberships` has records. `start`: the first offset that
 * still exists. `end`: the offset after the last record.
 */
type LogRange = { readonly start: number; readonly end: number }

export type OpenUnitStore = {
  readonly store: StateStore
  /** The offset up to which the store has the records of `memberships`; `undefined` if the store is empty. */
  readonly position: number | undefined
  /**
   * The epoch of the leader that appended the last record which the store's owner has read. -1 if unknown.
   */
  readonly leaderEpoch: number
  /** The reason why the store that was on disk could not be used. */
  readonly mistrust: string | undefined
}

/** The description of a store, which is an entry of the store itself. */
type Meta = {
  readonly format: number
  readonly log: string
  readonly unit: number
  readonly partitions: number
  readonly position: number
  /**
   * The epoch of the leader that appended the last record which the store's owner has read. -1 if unknown.
   */
  readonly leaderEpoch: number
  readonly atMs: number
}

/**
 * The form of a store's keys and entries. Raise this number when the form changes. Form 1 had the same key
 * for a property of an audience and for a property of a trait with the same id.
 */
const format = 2
/**
 * Limit on the time by which this machine's clock may have been set back since the store was written, in
 * milliseconds.
 */
const mostAheadMs = 5 * 60_000
const madeAnew = 'its log was truncated or recreated'

/** Opens the stores of units, and keeps each store until its unit takes over the store. */
export class UnitStores {
  readonly #options: UnitStoresOptions
  /** The open stores whose units aren't ready yet. */
  readonly #open = new Map<number, StateStore>()
  /** The locations of spare stores, by unit. A spare store is removed when its unit is released. */
  readonly #spares = new Map<number, string>()
  #cleared: Promise<void> | undefined

  constructor(options: UnitStoresOptions) {
    this.#options = options
  }

  /** The units whose stores are open and have not been handed over. */
  get units(): Iterable<number> {
    return this.#open.keys()
  }

  /**
   * Removes the spare stores of earlier processes that were killed. Only the first call does anything. If a
   * store can't be removed, the next process tries again.
   */
  clear(): Promise<void> {
    return (this.#cleared ??= this.#removeSpares())
  }

  /**
   * Opens the store of a unit. If the store on disk can't be trusted, removes it and opens an empty store.
   */
  async open(unit: number, range: LogRange): Promise<OpenUnitStore> {
    const location = join(this.#options.folder, `unit-${unit}`)
    const stores = this.#options.stores ?? levelStores
    const opened = await stores.open(location)
    let mistrust: string | undefined = 'it is broken'
    if (opened.ok) {
      const { store } = opened
      this.#open.set(unit, store)
      const meta = await readMeta(store)
      mistrust = meta === undefined ? undefined : await this.#faultOf(unit, meta, range)
      if (meta !== undefined && mistrust === undefined) return { store, ...meta, mistrust }
      await this.close(unit)
    } else if (opened.why === 'locked') return this.#openSpare(unit, `${location}.${randomUUID()}`)
    await stores.remove(location)
    const anew = await stores.open(location)
    if (!anew.ok) throw new Error(`no store can be opened in ${location}`, { cause: anew.cause })
    return this.#keepEmpty(unit, anew.store, mistrust)
  }

  /**
   * Opens an empty spare store for a unit. This is necessary if another process on this machine, which may be
   * hung, still has the unit's store open. The unit doesn't wait for that process. No other process opens a
   * spare store. It is removed when the unit is released.
   */
  async #openSpare(unit: number, location: string): Promise<OpenUnitStore> {
    const opened = await (this.#options.stores ?? levelStores).open(location)
    if (!opened.ok) throw new Error(`no store can be opened in ${location}`, { cause: opened.cause })
    this.#spares.set(unit, location)
    return this.#keepEmpty(unit, opened.store, 'another process has it open')
  }

  async #removeSpares(): Promise<void> {
    const { folder, stores = levelStores } = this.#options
    await stores.removeUnused(folder, isSpare).catch(() => undefined)
  }

  #keepEmpty(unit: number, store: StateStore, mistrust: string | undefined): OpenUnitStore {
    this.#open.set(unit, store)
    return { store, position: undefined, leaderEpoch: -1, mistrust }
  }

  /**
   * Hands a store over to its unit, which will close it. Throws if this member has left the unit in the
   * meantime.
   */
  handOver(unit: number, store: StateStore): void {
    if (this.#open.get(unit) !== store) throw new Error(`unit ${unit} was left while it was restored`)
    this.#open.delete(unit)
  }

  /**
   * Closes the store of a unit, unless the store was handed over. If the unit has a spare store, removes the
   * spare store.
   */
  async close(unit: number): Promise<void> {
    const store = this.#open.get(unit)
    this.#open.delete(unit)
    await store?.close()
    const spare = this.#spares.get(unit)
    if (spare === undefined) return
    this.#spares.delete(unit)
    await (this.#options.stores ?? levelStores).remove(spare)
  }

  /** Returns the reason why a store can't be trusted, or `undefined` if it can be trusted. */
  async #faultOf(unit: number, meta: Meta, { start, end }: LogRange): Promise<string | undefined> {
    const { logId, partitions, trustedForMs, ports } = this.#options
    if (meta.format !== format) return 'it has another format'
    if (meta.log !== logId || meta.unit !== unit || meta.partitions !== partitions)
      return 'it is of another log'
    if (meta.position > end || meta.position < start) return madeAnew
    const ageMs = ports.now() - meta.atMs
    if (ageMs > trustedForMs) return 'it is too old'
    if (ageMs < -mostAheadMs) return 'its checkpoint is in the future'
    // If all remaining records are newer than the store, the topic was most likely recreated. It is also
    // possible that compaction removed the older records. In that case, the topic is read once more, although
    // this would not be necessary.
    const firstMs = await ports.firstStateMs(unit)
    if (firstMs !== undefined && firstMs > meta.atMs) return madeAnew
    // The log may have lost its last records, and may have grown past the store's position since then.
    const { position, leaderEpoch } = meta
    if (leaderEpoch < 0) return undefined
    return (await ports.haveStatesDiverged(unit, position, leaderEpoch)) ? madeAnew : undefined
  }

  /** Returns the operation that writes the position and the other fields of `Meta` to a unit's store. */
  metaOf(unit: number, position: number, { leaderEpoch }: Pick<Meta, 'leaderEpoch'>): StoreOperation {
    const { logId, partitions, ports } = this.#options
    const meta: Meta = { format, log: logId, unit, partitions, position, leaderEpoch, atMs: ports.now() }
    return { type: 'put', key: metaKey, value: JSON.stringify(meta) }
  }
}

/**
 * Returns true for the name of a spare store. The names of other stores have nothing after the number of
 * their unit.
 */
function isSpare(name: string): boolean {
  return /^unit-\d+\./.test(name)
}

/**
 * Reads the description of a store. Returns `undefined` if there is no description, because no restore of the
 * store has ever finished.
 */
async function readMeta(store: StateStore): Promise<Meta | undefined> {
  const [text] = await store.getMany([metaKey])
  const parsed = text === undefined ? undefined : parseJson(text)
  return parsed?.ok === true && isMeta(parsed.value) ? parsed.value : undefined
}

function isMeta(value: unknown): value is Meta {
  if (typeof value !== 'object' || value === null) return false
  const fields = new Map<string, unknown>(Object.entries(value))
  const numbers = ['format', 'unit', 'partitions', 'position', 'leaderEpoch', 'atMs']
  return (
    numbers.every((name) => Number.isSafeInteger(fields.get(name))) && typeof fields.get('log') === 'string'
  )
}

/** Removes the staged parts of syncs that were not applied. These parts will be read from Kafka again. */
export async function clearStaged(store: StateStore): Promise<void> {
  const reader = store.range(anyStaged)
  try {
    for (let entries = await reader.next(staged); entries.length > 0; entries = await reader.next(staged)) {
      await store.write(entries.map(([key]) => ({ type: 'del', key })))
    }
  } finally {
    await reader.close()
  }
}

/**
 * The number of staged entries that are removed at once. The number is small, because each entry may be a
 * whole part of a sync.
 */
const staged = 8
