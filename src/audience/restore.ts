import { type Cell, decodeCell, encodeCell, place } from './cell.ts'
import type { Checkpoint } from './checkpoint.ts'
import { KeyFilter } from './key-filter.ts'
import type { LoggedState } from './ports.ts'
import { decodeState, type StateRecord } from './state-record.ts'
import type { StateStore, StoreOperation } from './store.ts'
import { anyDeletion, deletionKeyOf, knownPropertyKey, parted, subjectKey } from './store-keys.ts'

export type RestoreOptions = {
  readonly store: StateStore
  /** Nothing is in the store yet. */
  readonly isEmpty: boolean
  /** From the checkpoint's position to the end. */
  readonly records: AsyncIterable<readonly LoggedState[]>
  readonly checkpoint: Checkpoint
  /** Deletion floors of the store; those that are read are added. */
  readonly deletions: KeyFilter
  /** What says in the store how far it is. */
  readonly meta: (position: number) => StoreOperation
  readonly onProgress: (records: number, at: number) => void
}

/**
 * Brings the store to the end of the log: the highest version of each key holds. Gives the keys whose last record isn't that of
 * their highest version, each with the offset that the checkpoint is blocked at until that is written again.
 */
export async function restore(options: RestoreOptions): Promise<Map<string, number>> {
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

/** Of a million keys an eighth is looked for without need. */
const seenBits = 2 ** 23
const mostAtOnce = 2_000

type Taken = { readonly key: string; readonly deletionKey: string | undefined; readonly offset: number } & {
  readonly record: StateRecord
}

class Restoring {
  readonly #options: RestoreOptions
  /** Keys that were written to what was an empty store: the others need not be looked for. */
  readonly #seen: KeyFilter | undefined
  readonly #knownProperties = new Set<string>()
  readonly outOfOrder = new Map<string, number>()

  constructor(options: RestoreOptions, seen: KeyFilter | undefined) {
    this.#options = options
    this.#seen = seen
  }

  async take(batch: readonly LoggedState[]): Promise<void> {
    const { store, checkpoint, meta } = this.#options
    const taken = this.#decode(batch)
    const cells = await this.#read(taken)
    const changed = new Map<string, Cell>()
    for (const one of taken) this.#place(one, cells, changed)
    for (const { offset } of batch) checkpoint.read(offset)

    const operations: StoreOperation[] = []
    for (const [key, cell] of changed) {
      const value = encodeCell(cell)
      operations.push(value === undefined ? { type: 'del', key } : { type: 'put', key, value })
      this.#seen?.add(key)
    }
    this.#addKnownProperties(taken, operations)
    operations.push(meta(checkpoint.position))
    await store.write(operations)
  }

  /** What is no state of ours is left out: it is told when the group reads it. */
  #decode(batch: readonly LoggedState[]): Taken[] {
    const { deletions } = this.#options
    const taken: Taken[] = []
    for (const { key, value, offset } of batch) {
      const decoded = decodeState(key, value)
      if (!decoded.ok) continue
      const { subject } = decoded.record
      const storeKey = subjectKey(subject)
      if (subject.kind === 'deletion') deletions.add(storeKey)
      const mayBeDeleted = subject.kind === 'property' && !deletions.isEmpty
      const deletionKey = mayBeDeleted ? deletionKeyOf(subject) : undefined
      taken.push({ key: storeKey, deletionKey, offset, record: decoded.record })
    }
    return taken
  }

  async #read(taken: readonly Taken[]): Promise<Map<string, Cell>> {
    const { store, deletions } = this.#options
    const keys = new Set<string>()
    for (const { key, deletionKey } of taken) {
      if (this.#seen === undefined || this.#seen.mayHold(key)) keys.add(key)
      if (deletionKey !== undefined && deletions.mayHold(deletionKey)) keys.add(deletionKey)
    }
    const cells = new Map<string, Cell>()
    if (keys.size === 0) return cells
    const wanted = [...keys]
    const texts = await store.getMany(wanted)
    for (const [index, key] of wanted.entries()) {
      const text = texts[index]
      if (text !== undefined) cells.set(key, decodeCell(text))
    }
    return cells
  }

  #place(
    { key, deletionKey, offset, record }: Taken,
    cells: Map<string, Cell>,
    changed: Map<string, Cell>,
  ): void {
    const floor = deletionKey === undefined ? undefined : cells.get(deletionKey)
    const deletedUpToMs = floor?.kind === 'deletion' ? floor.state.requestedAtMs : -Infinity
    const cell = cellOf(record, offset, deletedUpToMs)
    const isDead = cell.kind === 'property' && cell.state.version.atMs <= deletedUpToMs
    const held = cells.get(key)
    // What was deleted, and was written late: a tombstone follows, from whoever reads it in the group.
    if (isDead && held === undefined) return
    const { best, isKnown, isOutOfOrder } = place(cell, held)
    if (!isKnown) {
      cells.set(key, best)
      changed.set(key, best)
    }
    this.#order(key, isOutOfOrder ? Math.max(offset, held?.offset ?? 0) : undefined)
  }

  #order(key: string, offset: number | undefined): void {
    const { checkpoint } = this.#options
    const before = this.outOfOrder.get(key)
    if (before !== undefined) checkpoint.unblock(before)
    if (offset === undefined) {
      this.outOfOrder.delete(key)
      return
    }
    checkpoint.block(offset)
    this.outOfOrder.set(key, offset)
  }

  #addKnownProperties(taken: readonly Taken[], operations: StoreOperation[]): void {
    for (const { key, record } of taken) {
      const { subject, state } = record
      if (subject.kind !== 'property' || state === null || !('id' in state)) continue
      const mark = key.slice(0, key.lastIndexOf(parted) + 1) + state.id
      if (this.#knownProperties.has(mark)) continue
      if (this.#knownProperties.size >= maxKnownProperties) this.#knownProperties.clear()
      this.#knownProperties.add(mark)
      const known = knownPropertyKey(subject.spaceId, subject.property, state.id)
      operations.push({ type: 'put', key: known, value: '' })
    }
  }
}

const maxKnownProperties = 10_000

/** A record of the log, at its offset. */
export function cellOf(record: StateRecord, offset: number, deletedUpToMs: number): Cell {
  const { subject, state } = record
  if (state === null) {
    // A tombstone without its floor, which nobody keeps for ever, is of all that was there.
    const upToMs = subject.kind === 'property' && deletedUpToMs > -Infinity ? deletedUpToMs : Infinity
    return { kind: 'gone', upToMs, offset }
  }
  if ('requestId' in state) return { kind: 'deletion', state, offset }
  if ('syncId' in state) return { kind: 'sync', state, offset }
  return { kind: 'property', state, offset }
}

/** Takes the deletion floors that a store has into a filter. */
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
