import {
  type Entry,
  decodeEntry,
  encodeEntry,
  isUnreported,
  place,
  type PropertyEntry,
} from '../store/entry.ts'
import type { Checkpoint } from '../store/checkpoint.ts'
import { KeyFilter } from '../store/key-filter.ts'
import type { LoggedState } from '../audience-ports.ts'
import { decodeState, type StateRecord } from '../records/state-record.ts'
import type { StateStore, StoreOperation } from '../store/store.ts'
import { anyDeletion, deletionKeyOf, knownPropertyKey, storeKeyOf } from '../store/store-keys.ts'
import type { RewriteReason } from '../store/ledger.ts'
import { laterOf } from '../records/version.ts'

export type RestoreOptions = {
  readonly store: StateStore
  readonly isEmpty: boolean
  /** The records of the unit's `memberships`, from the position of the checkpoint to the end. */
  readonly records: AsyncIterable<readonly LoggedState[]>
  readonly checkpoint: Checkpoint
  /**
   * The keys of the store's deletion floors. `restore` adds the keys of the floors that it reads from
   * `memberships`.
   */
  readonly deletions: KeyFilter
  /** Returns the operation that writes the position to the store. */
  readonly meta: (position: number) => StoreOperation
  readonly onProgress: (records: number, at: number) => void
}

/**
 * Adds to a store all records that are later than its position. The store keeps the entry with the highest
 * version of each key. Returns the keys that must be written again, for one of two reasons. The last record
 * of the key doesn't have the highest version. Or the value must be sent to receivers again. The checkpoint
 * can't pass a key's `blockedAt` until the key has been written again.
 */
export async function restore(options: RestoreOptions): Promise<Map<string, RepairNeeded>> {
  const { isEmpty, records, onProgress } = options
  const restoring = new Restoring(options, isEmpty ? new KeyFilter(seenBits) : undefined)
  let count = 0
  for await (const batch of records) {
    for (let at = 0; at < batch.length; at += mostAtOnce) {
      await restoring.take(batch.slice(at, at + mostAtOnce))
    }
    count += batch.length
    const last = batch.at(-1)
    if (last !== undefined) onProgress(count, last.offset + 1)
  }
  return restoring.outOfOrder
}

/** The reason why a key must be written again, and the offset at which the key blocks the checkpoint. */
export type RepairNeeded = RewriteReason & { readonly blockedAt: number }

/**
 * The size in bits of the filter of seen keys. With a million keys, one in eight new keys is looked up in the
 * store although it isn't there.
 */
const seenBits = 2 ** 23
const mostAtOnce = 2_000

type Taken = {
  readonly key: string
  readonly deletionKey: string | undefined
  readonly offset: number
  readonly record: StateRecord
  /** True if the key may be in the store, or earlier in the same batch. */
  readonly mayBeHeld: boolean
}

class Restoring {
  readonly #options: RestoreOptions
  /**
   * The keys that were written so far, if the store was empty at the start of the restore. In that case, the
   * store can't have other keys, so only these keys have to be looked up.
   */
  readonly #seen: KeyFilter | undefined
  readonly #knownProperties = new Set<string>()
  #lastKnown: { spaceId: string; property: string; kind: string; id: string } | undefined
  readonly outOfOrder = new Map<string, RepairNeeded>()

  constructor(options: RestoreOptions, seen: KeyFilter | undefined) {
    this.#options = options
    this.#seen = seen
  }

  async take(batch: readonly LoggedState[]): Promise<void> {
    const { store, checkpoint, meta } = this.#options
    const operations: StoreOperation[] = []
    const taken = this.#decode(batch, operations)
    const entries = await this.#read(taken)
    const changed = new Map<string, Entry>()
    for (const one of taken) {
      // The key is new, no later record of this batch has the key, and no deletion can concern the key.
      const isAlone = one.deletionKey === undefined && !entries.has(one.key)
      if (isAlone) addTo(operations, one.key, entryOf(one.record, one.offset, -Infinity))
      else this.#place(one, entries, changed)
    }
    const last = batch.at(-1)
    if (last !== undefined) checkpoint.read(last.offset)
    checkpoint.readEpoch(last?.leaderEpoch)
    for (const [key, entry] of changed) addTo(operations, key, entry)
    operations.push(meta(checkpoint.position))
    await store.write(operations)
  }

  /**
   * Decodes a batch. Leaves out records that Sluice didn't write. They are reported later, when the group
   * reads them.
   */
  #decode(batch: readonly LoggedState[], operations: StoreOperation[]): Taken[] {
    const { deletions } = this.#options
    const taken: Taken[] = []
    for (const { key, value, offset } of batch) {
      const decoded = decodeState(key, value)
      if (!decoded.ok) continue
      const { record } = decoded
      const { stateKey } = record
      const storeKey = storeKeyOf(stateKey)
      if (stateKey.kind === 'deletion') deletions.add(storeKey)
      this.#addKnownProperty(record, operations)
      const mayBeDeleted = stateKey.kind === 'property' && !deletions.isEmpty
      const deletionKey = mayBeDeleted ? deletionKeyOf(stateKey) : undefined
      const mayBeHeld = this.#seen === undefined || this.#seen.add(storeKey)
      taken.push({ key: storeKey, deletionKey, offset, record, mayBeHeld })
    }
    return taken
  }

  /**
   * Reads the entries with which the records are compared. Leaves out keys that are new in this batch and
   * occur only once in it.
   */
  async #read(taken: readonly Taken[]): Promise<Map<string, Entry | undefined>> {
    const { store, deletions } = this.#options
    const entries = new Map<string, Entry | undefined>()
    for (const { key, deletionKey, mayBeHeld } of taken) {
      if (mayBeHeld) entries.set(key, undefined)
      if (deletionKey !== undefined && deletions.mayHold(deletionKey)) entries.set(deletionKey, undefined)
    }
    if (entries.size === 0) return entries
    const wanted = [...entries.keys()]
    const texts = await store.getMany(wanted)
    for (const [index, key] of wanted.entries()) {
      const text = texts[index]
      if (text !== undefined) entries.set(key, decodeEntry(text))
    }
    return entries
  }

  #place(
    { key, deletionKey, offset, record }: Taken,
    entries: Map<string, Entry | undefined>,
    changed: Map<string, Entry>,
  ): void {
    const floor = deletionKey === undefined ? undefined : entries.get(deletionKey)
    const deletedUpToMs = floor?.kind === 'deletion' ? floor.state.requestedAtMs : -Infinity
    const entry = entryOf(record, offset, deletedUpToMs)
    const isDead = entry.kind === 'property' && entry.state.version.atMs <= deletedUpToMs
    const held = entries.get(key)
    // The state was written after its user was deleted. Later, the consumer group reads the record, and the
    // unit's owner writes a tombstone.
    if (isDead && held === undefined) return
    const { best, isKnown, isOutOfOrder, reportedBetween } = place(entry, held)
    if (!isKnown) {
      entries.set(key, best)
      changed.set(key, best)
    }
    if (!isOutOfOrder && reportedBetween === undefined && this.outOfOrder.size === 0) return
    this.#order(key, best, isOutOfOrder ? Math.max(offset, held?.offset ?? 0) : -1, reportedBetween)
  }

  #order(key: string, best: Entry, olderAt: number, reportedBetween: PropertyEntry | undefined): void {
    const { checkpoint } = this.#options
    const before = this.outOfOrder.get(key)
    if (before !== undefined) checkpoint.unblock(before.blockedAt)
    let { unreported, unreportedAt } = before ?? { unreported: undefined, unreportedAt: -1 }
    if (reportedBetween !== undefined) {
      const { state, offset } = reportedBetween
      // A restore that starts at the lower offset finds all of these records again.
      unreportedAt = unreported === undefined ? offset : Math.min(unreportedAt, offset)
      unreported = unreported === undefined ? state.version : laterOf(unreported, state.version)
    }
    if (!isUnreported(best, unreported)) unreported = undefined
    if (olderAt === -1 && unreported === undefined) {
      this.outOfOrder.delete(key)
      return
    }
    const blockedAt =
      unreported === undefined ? olderAt : olderAt === -1 ? unreportedAt : Math.min(olderAt, unreportedAt)
    checkpoint.block(blockedAt)
    this.outOfOrder.set(key, { olderAt, unreported, unreportedAt, blockedAt })
  }

  #addKnownProperty({ stateKey, state }: StateRecord, operations: StoreOperation[]): void {
    if (stateKey.kind !== 'property' || state === null || !('id' in state)) return
    const { spaceId, property } = stateKey
    const { kind, id } = state
    const last = this.#lastKnown
    const isLast = last?.property === property && last.id === id && last.spaceId === spaceId
    if (isLast && last.kind === kind) return
    this.#lastKnown = { spaceId, property, kind, id }
    const key = knownPropertyKey(stateKey, state)
    if (this.#knownProperties.has(key)) return
    if (this.#knownProperties.size >= maxKnownProperties) this.#knownProperties.clear()
    this.#knownProperties.add(key)
    operations.push({ type: 'put', key, value: '' })
  }
}

function addTo(operations: StoreOperation[], key: string, entry: Entry): void {
  const value = encodeEntry(entry)
  operations.push(value === undefined ? { type: 'del', key } : { type: 'put', key, value })
}

const maxKnownProperties = 10_000

export function entryOf(record: StateRecord, offset: number, deletedUpToMs: number): Entry {
  const { stateKey, state } = record
  if (state === null) {
    // A tombstone doesn't name the deletion floor that caused it, and the floor of a later request may have
    // replaced this floor. So the time of the present floor is used. If there is no floor, the time is
    // unknown.
    const upToMs = stateKey.kind === 'property' && deletedUpToMs > -Infinity ? deletedUpToMs : Infinity
    return { kind: 'gone', upToMs, offset }
  }
  if ('requestId' in state) return { kind: 'deletion', state, offset }
  if ('syncId' in state) return { kind: 'sync', state, offset }
  return { kind: 'property', state, offset }
}

/** Adds the keys of a store's deletion floors to a filter. */
export async function readDeletions(store: StateStore, deletions: KeyFilter): Promise<void> {
  const reader = store.range(anyDeletion)
  try {
    for (let entries = await reader.next(1_000); entries.length > 0; entries = await reader.next(1_000)) {
      for (const [key] of entries) deletions.add(key)
    }
  } finally {
    await reader.close()
  }
}
