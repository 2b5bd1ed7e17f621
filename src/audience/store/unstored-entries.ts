import type { Checkpoint } from './checkpoint.ts'
import { encodeEntry, type Entry } from './entry.ts'
import type { KeyFilter } from './key-filter.ts'
import type { StateStore, StoreOperation } from './store.ts'
import { knownPropertyKey, parted, stateKeyOf } from './store-keys.ts'
import type { Version, PropertyState } from '../records/version.ts'

export type UnstoredEntriesOptions = {
  readonly store: StateStore
  readonly checkpoint: Pick<Checkpoint, 'position'>
  readonly deletions: KeyFilter
  /**
   * The version of each audience's last applied sync, by the key of the audience's sync floor in the store.
   * `UnstoredEntries` updates this map.
   */
  readonly syncFloors: Map<string, Version>
  readonly meta: (position: number) => StoreOperation
  readonly onTrouble: (error: unknown) => void
}

/**
 * Keeps the entries that Kafka has acknowledged and the store doesn't have yet, and stores them. After each
 * write, the store is complete up to one offset of `memberships`.
 */
export class UnstoredEntries {
  readonly #options: UnstoredEntriesOptions
  /** Acknowledged entries that will be stored next. */
  #fresh = new Map<string, Entry>()
  #storing = new Map<string, Entry>()
  /** Entries that were stored during a read of the store. The read may have missed them. */
  readonly #lingering = new Map<string, Entry>()
  /**
   * Entries that other owners have written since a sync began to read a snapshot of the store; `undefined`
   * while no sync reads one.
   */
  #foreign: Map<string, Entry> | undefined
  #isReading = false
  #storingTask: Promise<void> | undefined
  #storedPosition: number
  /**
   * True once a write to the store has failed. The store then lacks entries, so no higher position may be
   * written to it.
   */
  #isBroken = false
  readonly #knownProperties = new Set<string>()

  constructor(options: UnstoredEntriesOptions) {
    this.#options = options
    this.#storedPosition = options.checkpoint.position
  }

  /** The number of entries of other owners that a sync has to consider. */
  get foreignCount(): number {
    return this.#foreign?.size ?? 0
  }

  /** True if there are entries that the store may lack. While no value changes, this is mostly false. */
  get #isAhead(): boolean {
    return this.#fresh.size + this.#storing.size + this.#lingering.size + this.foreignCount > 0
  }

  /** Returns the entry of a key, if there is an entry that the store may lack. */
  get(key: string): Entry | undefined {
    if (!this.#isAhead) return undefined
    return (
      this.#fresh.get(key) ?? this.#storing.get(key) ?? this.#lingering.get(key) ?? this.#foreign?.get(key)
    )
  }

  /**
   * Marks the start of a read of the store. Entries that are stored from now on also stay in memory until
   * `endReading` is called, because the read may miss them.
   */
  beginReading(): void {
    this.#isReading = true
  }

  endReading(): void {
    this.#isReading = false
    this.#lingering.clear()
  }

  /**
   * Marks the start of a sync, which reads a snapshot of the store. Entries that other owners write are kept
   * in memory until `endSync` is called.
   */
  beginSync(): void {
    this.#foreign = new Map()
  }

  endSync(): void {
    this.#foreign = undefined
  }

  /** Adds an acknowledged entry, which will be stored soon. */
  keep(key: string, entry: Entry): void {
    this.#fresh.set(key, entry)
    if (this.#foreign?.has(key) === true) this.#foreign.set(key, entry)
    if (entry.kind === 'deletion') this.#options.deletions.add(key)
    else if (entry.kind === 'sync') this.#options.syncFloors.set(key, entry.state.version)
    this.#storeSoon()
  }

  /** Remembers an entry of another owner, if a sync is reading a snapshot of the store. */
  keepForeign(key: string, entry: Entry): void {
    this.#foreign?.set(key, entry)
  }

  /**
   * Stores the checkpoint's position if this position is far ahead of the stored position. Without this
   * method, a restore would have to read more and more records while no entry is stored.
   */
  storeWhereFarBehind(): void {
    if (this.#options.checkpoint.position - this.#storedPosition >= positionsUnstored) this.#storeSoon()
  }

  /** Resolves once all entries that are acknowledged now are stored. Rejects if the store has failed. */
  async stored(): Promise<void> {
    await this.#allStored()
    if (this.#isBroken) throw new Error('a write to the store has failed before')
  }

  /** Stores the position, and the entries that aren't stored yet. Writes nothing if the store has failed. */
  async close(): Promise<void> {
    await this.#allStored()
    if (this.#isBroken) return
    const { store, meta, checkpoint } = this.#options
    await store.write([meta(checkpoint.position)])
  }

  async #allStored(): Promise<void> {
    while (!this.#isBroken && (this.#storingTask !== undefined || this.#fresh.size > 0)) {
      this.#storeSoon()
      await this.#storingTask
    }
  }

  #storeSoon(): void {
    if (this.#isBroken) return
    this.#storingTask ??= this.#storeAll()
      .catch((error: unknown) => {
        this.#isBroken = true
        this.#options.onTrouble(error)
      })
      .finally(() => {
        this.#storingTask = undefined
      })
  }

  async #storeAll(): Promise<void> {
    const { store, checkpoint, meta } = this.#options
    do {
      // Waits for other acknowledgements, because many come at the same time.
      await new Promise((resolve) => setImmediate(resolve))
      const entries = this.#fresh
      this.#storing = entries
      this.#fresh = new Map()
      // The position must be read at this point. Each record below the position is in `#storing` or was
      // stored earlier.
      const { position } = checkpoint
      const operations: StoreOperation[] = []
      for (const [key, entry] of entries) this.#addTo(operations, key, entry)
      operations.push(meta(position))
      await store.write(operations)
      this.#storedPosition = position
      if (this.#isReading) for (const [key, entry] of entries) this.#lingering.set(key, entry)
      this.#storing = new Map()
    } while (this.#fresh.size > 0)
  }

  #addTo(operations: StoreOperation[], key: string, entry: Entry): void {
    const value = encodeEntry(entry)
    if (value === undefined) {
      operations.push({ type: 'del', key })
      return
    }
    operations.push({ type: 'put', key, value })
    if (entry.kind !== 'property') return
    const { kind, id } = entry.state
    const mark = `${key.slice(0, key.lastIndexOf(parted) + 1)}${kind}${id}`
    if (this.#knownProperties.has(mark)) return
    if (this.#knownProperties.size >= maxKnownProperties) this.#knownProperties.clear()
    this.#knownProperties.add(mark)
    operations.push({ type: 'put', key: knownKeyOf(key, entry.state), value: '' })
  }
}

const maxKnownProperties = 10_000
const positionsUnstored = 10_000

function knownKeyOf(key: string, state: PropertyState): string {
  const stateKey = stateKeyOf(key)
  if (stateKey?.kind !== 'property') throw new Error('a property is held under a key of something else')
  return knownPropertyKey(stateKey, state)
}
