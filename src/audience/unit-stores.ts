import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { parseJson } from '../message/json.ts'
import type { AudiencePorts } from './audience-ports.ts'
import { levelStores, type StateStore, type StoreOperation, type Stores } from './store.ts'
import { anyStaged, metaKey } from './store-keys.ts'

export type UnitStoresOptions = {
  /** Each unit's store is a folder in it. */
  readonly folder: string
  readonly partitions: number
  /**
   * Names the log that the stores are made of: the cluster and the topic. Stores of another are not trusted.
   */
  readonly logId: string
  /** Stores that are older may have missed tombstones, which are kept for so long: `delete.retention.ms`. */
  readonly trustedForMs: number
  readonly ports: Pick<AudiencePorts, 'firstStateMs' | 'now'>
  /** On disk, unless others are given. */
  readonly stores?: Stores
}

/** The first offset of a unit's `memberships` that is there, and the one after the last. */
type LogRange = { readonly start: number; readonly end: number }

export type OpenUnitStore = {
  readonly store: StateStore
  /** Up to where the store has the log; `undefined`: it is empty. */
  readonly position: number | undefined
  /** Why the one before could not be used. */
  readonly mistrust: string | undefined
}

/** What a store says of itself. */
type Meta = {
  readonly format: number
  readonly log: string
  readonly unit: number
  readonly partitions: number
  readonly position: number
  readonly atMs: number
}

const format = 1
/** So far may the clock have been put back. */
const mostAheadMs = 5 * 60_000
const madeAnew = 'its log was cut or made anew'

/** The stores of units, from when they are opened to when their units take them over; and where they are. */
export class UnitStores {
  readonly #options: UnitStoresOptions
  /** Stores that are open, though their units aren't ready. */
  readonly #open = new Map<number, StateStore>()
  /** Where the stores are that are not in their own place, and are removed in the end. */
  readonly #spares = new Map<number, string>()
  #cleared: Promise<void> | undefined

  constructor(options: UnitStoresOptions) {
    this.#options = options
  }

  /** Units whose stores are open here. */
  get units(): Iterable<number> {
    return this.#open.keys()
  }

  /**
   * Removes, at the first call, what programs before have left that were killed. What can't be removed is
   * tried again at the next start.
   */
  clear(): Promise<void> {
    return (this.#cleared ??= this.#removeSpares())
  }

  /** Opens the store of a unit: one that can be trusted, else an empty one. */
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
      if (meta !== undefined && mistrust === undefined) return { store, position: meta.position, mistrust }
      await this.close(unit)
    } else if (opened.why === 'locked') return this.#openSpare(unit, `${location}.${randomUUID()}`)
    await stores.remove(location)
    const anew = await stores.open(location)
    if (!anew.ok) throw new Error(`no store can be opened in ${location}`, { cause: anew.cause })
    return this.#keepEmpty(unit, anew.store, mistrust)
  }

  /**
   * An owner before on this machine stands still, and has the store in its hands: the unit doesn't wait for
   * it. A store that nobody else opens, empty, which ends with the ownership.
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
    return { store, position: undefined, mistrust }
  }

  /** Hands a store to its unit, which closes it. Throws where the unit was left meanwhile. */
  handOver(unit: number, store: StateStore): void {
    if (this.#open.get(unit) !== store) throw new Error(`unit ${unit} was left while it was restored`)
    this.#open.delete(unit)
  }

  /**
   * Closes the store of a unit, unless that was handed over, and removes it where it isn't in its own place.
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

  /** Why a store is not to be used. */
  async #faultOf(unit: number, meta: Meta, { start, end }: LogRange): Promise<string | undefined> {
    const { logId, partitions, trustedForMs, ports } = this.#options
    if (meta.format !== format) return 'it has another format'
    if (meta.log !== logId || meta.unit !== unit || meta.partitions !== partitions)
      return 'it is of another log'
    if (meta.position > end || meta.position < start) return madeAnew
    const ageMs = ports.now() - meta.atMs
    if (ageMs > trustedForMs) return 'it is too old'
    if (ageMs < -mostAheadMs) return 'it is of a time to come'
    // All that a log begins with may be compacted away: then it is read once more, without need.
    const firstMs = await ports.firstStateMs(unit)
    return firstMs !== undefined && firstMs > meta.atMs ? madeAnew : undefined
  }

  /** Gives what says in the store of a unit how far that is. */
  metaOf(unit: number, position: number): StoreOperation {
    const { logId, partitions, ports } = this.#options
    const meta: Meta = { format, log: logId, unit, partitions, position, atMs: ports.now() }
    return { type: 'put', key: metaKey, value: JSON.stringify(meta) }
  }
}

/** Beside those of units, which are named by their numbers alone. */
function isSpare(name: string): boolean {
  return /^unit-\d+\./.test(name)
}

/** `undefined` where the store says nothing of itself: then nothing was ever finished in it. */
async function readMeta(store: StateStore): Promise<Meta | undefined> {
  const [text] = await store.getMany([metaKey])
  const parsed = text === undefined ? undefined : parseJson(text)
  return parsed?.ok === true && isMeta(parsed.value) ? parsed.value : undefined
}

function isMeta(value: unknown): value is Meta {
  if (typeof value !== 'object' || value === null) return false
  const fields = new Map<string, unknown>(Object.entries(value))
  const numbers = ['format', 'unit', 'partitions', 'position', 'atMs']
  return (
    numbers.every((name) => Number.isSafeInteger(fields.get(name))) && typeof fields.get('log') === 'string'
  )
}

/** Removes parts of syncs that were not applied: they are read again. */
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

/** Few at once: each may be a whole part. */
const staged = 8
