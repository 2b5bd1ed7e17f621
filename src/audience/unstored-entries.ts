import type { Checkpoint } from './checkpoint.ts'
import { encodeEntry, type Entry } from './entry.ts'
import type { KeyFilter } from './key-filter.ts'
import type { StateStore, StoreOperation } from './store.ts'
import { knownPropertyKey, parted, subjectOf } from './store-keys.ts'
import type { Version } from './version.ts'

export type UnstoredEntriesOptions = {
  readonly store: StateStore
  readonly checkpoint: Pick<Checkpoint, 'position'>
  readonly deletions: KeyFilter
  /** The version of the last applied sync, by its key in the store. Kept up to date here. */
  readonly syncFloors: Map<string, Version>
  readonly meta: (position: number) => StoreOperation
  readonly onTrouble: (error: unknown) => void
}

/**
 * Entries that Kafka has acknowledged and the store lacks. Stores them, always up to one point of the log.
 */
export class UnstoredEntries {
  readonly #options: UnstoredEntriesOptions
  /** Acknowledged, to be stored next. */
  #fresh = new Map<string, Entry>()
  /** Being stored. */
  #storing = new Map<string, Entry>()
  /** Stored while a read of the store was under way that may not have seen it. */
  readonly #lingering = new Map<string, Entry>()
  /** What others wrote while a sync walks through the store as it was before; `undefined` while none does. */
  #foreign: Map<string, Entry> | undefined
  #isReading = false
  #storingTask: Promise<void> | undefined
  #storedPosition: number
  /** A write to the store has failed: it lacks something, and may not say that it has what comes behind. */
  #isBroken = false
  readonly #knownProperties = new Set<string>()

  constructor(options: UnstoredEntriesOptions) {
    this.#options = options
    this.#storedPosition = options.checkpoint.position
  }

  /** How many entries of others a sync has to look at. */
  get foreignCount(): number {
    return this.#foreign?.size ?? 0
  }

  /** Whether anything is known beyond what the store has: mostly not, where nothing changes. */
  get #isAhead(): boolean {
    return this.#fresh.size + this.#storing.size + this.#lingering.size + this.foreignCount > 0
  }

  /** What is known of a key beyond what the store has. */
  get(key: string): Entry | undefined {
    if (!this.#isAhead) return undefined
    return (
      this.#fresh.get(key) ?? this.#storing.get(key) ?? this.#lingering.get(key) ?? this.#foreign?.get(key)
    )
  }

  /** The store is read from here to `endReading`: what is stored meanwhile is remembered. */
  beginReading(): void {
    this.#isReading = true
  }

  endReading(): void {
    this.#isReading = false
    this.#lingering.clear()
  }

  /** From here on a snapshot of the store is walked through: what others write is remembered. */
  beginSync(): void {
    this.#foreign = new Map()
  }

  endSync(): void {
    this.#foreign = undefined
  }

  /** Takes an entry that is acknowledged, to be stored soon. */
  keep(key: string, entry: Entry): void {
    this.#fresh.set(key, entry)
    if (this.#foreign?.has(key) === true) this.#foreign.set(key, entry)
    if (entry.kind === 'deletion') this.#options.deletions.add(key)
    else if (entry.kind === 'sync') this.#options.syncFloors.set(key, entry.state.version)
    this.#storeSoon()
  }

  /** Remembers an entry of somebody else for the sync that walks through the store, if one does. */
  keepForeign(key: string, entry: Entry): void {
    this.#foreign?.set(key, entry)
  }

  /** A store that nothing is written to would start ever further back. */
  storeWhereFarBehind(): void {
    if (this.#options.checkpoint.position - this.#storedPosition >= positionsUnstored) this.#storeSoon()
  }

  /**
   * Resolves once all that is acknowledged so far is stored. Rejects where the store takes nothing any more.
   */
  async stored(): Promise<void> {
    await this.#allStored()
    if (this.#isBroken) throw new Error('a write to the store has failed before')
  }

  /** Stores what is left, and how far it is; nothing where the store has failed. */
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
      // Acknowledgements come many at a time.
      await new Promise((resolve) => setImmediate(resolve))
      const entries = this.#fresh
      this.#storing = entries
      this.#fresh = new Map()
      // Read now: all that is below is in these entries, or was stored before.
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
    const mark = key.slice(0, key.lastIndexOf(parted) + 1) + entry.state.id
    if (this.#knownProperties.has(mark)) return
    if (this.#knownProperties.size >= maxKnownProperties) this.#knownProperties.clear()
    this.#knownProperties.add(mark)
    operations.push({ type: 'put', key: knownKeyOf(key, entry.state.id), value: '' })
  }
}

const maxKnownProperties = 10_000
const positionsUnstored = 10_000

function knownKeyOf(key: string, id: string): string {
  const subject = subjectOf(key)
  if (subject?.kind !== 'property') throw new Error('a property is held under a key of something else')
  return knownPropertyKey(subject.spaceId, subject.property, id)
}
