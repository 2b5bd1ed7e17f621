import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { BlockReader } from '../block-reader.ts'
import { believedMs } from '../indexing.ts'
import { lockFolder } from './folder-lock.ts'
import { firstKeptSlot, removeSlot, slotPath, slotsIn, syncSlots } from './log-files.ts'
import { openFile } from './open-file.ts'
import { slotOf } from './row.ts'
import { generationsIn, isBefore, type Position, SlotWriter } from './slot-writer.ts'

export type IndexWriterOptions = {
  readonly folder: string
  readonly keptMs: number
  /** Returns epoch milliseconds. */
  readonly now: () => number
  /** Waits until the rows that were committed to slots are on the disk. The default is `syncSlots`. */
  readonly sync?: (folder: string, slots: Iterable<number>) => void
}

/** A record of the delivery log's topic. The value of such a record is a block of log records. */
export type IndexedBlock = {
  readonly partition: number
  readonly offset: number
  /** The append time of the Kafka record, in epoch milliseconds. */
  readonly timestampMs: number
  readonly value: Buffer
}

/**
 * The result of a commit: how many rows were written, how many blocks could not be read, and how many records
 * were older than the retention.
 */
export type Indexed = { readonly rows: number; readonly unreadable: number; readonly expired: number }

/**
 * The time without new records after which a slot is closed, in milliseconds. A slot is the file of one hour.
 */
const closedAfterMs = 10 * 60_000
/** Limit on the open slots, which are files of one hour each. Each open slot has a cache of its own. */
const maxOpenSlots = 6
/**
 * A commit also syncs the slots and writes the positions if this time has passed since the last sync, in
 * milliseconds. A sync takes several milliseconds of the disk's time.
 */
const syncEveryMs = 5_000

/**
 * Writes the files of the index. There is one file (a slot) for each hour, and `positions.sqlite`, which has
 * the offsets from which the topic must still be read. Each slot also has its own positions in the topic. A
 * slot's rows and positions are written in the same transaction. So a block that is read again after a crash
 * adds no rows to slots that already have the block's rows. The files are a cache: if they are lost, the
 * whole topic is read again.
 *
 * `positions.sqlite` is written a few seconds after the slots, once the slots are on the disk. So even after
 * a loss of power, its offsets never go beyond a block whose rows are lost.
 */
export class IndexWriter {
  readonly #options: IndexWriterOptions
  readonly #lock: DatabaseSync
  readonly #database: DatabaseSync
  readonly #positions = new Map<number, Position & { topicId: string }>()
  readonly #slots = new Map<number, SlotWriter>()
  readonly #reader = new BlockReader()
  readonly #moved = new Map<number, Position>()
  /** Positions that the slots already have and `positions.sqlite` doesn't have yet. */
  readonly #unwritten = new Map<number, Position>()
  /** Slots, which are files of one hour each, with rows that may not be on the disk yet. */
  readonly #unsynced = new Set<number>()
  #syncedAtMs: number
  /**
   * The highest generation of each partition in the slots. A generation is a number that increases when the
   * topic is created anew or loses records. This map is filled only if `positions.sqlite` was lost. Without
   * this map, generations would start at 0 again, and new blocks would seem older than the blocks in the
   * slots.
   */
  readonly #lostGenerations: ReadonlyMap<number, number> = new Map()
  #touched = new Set<SlotWriter>()
  #rows = 0
  #unreadable = 0
  #expired = 0

  constructor(options: IndexWriterOptions) {
    this.#options = options
    const { folder, now } = options
    this.#syncedAtMs = now()
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    this.#lock = lockFolder(folder)
    this.#database = openFile(join(folder, 'positions.sqlite'))
    this.#database.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = NORMAL;
      CREATE TABLE IF NOT EXISTS positions (partition INTEGER PRIMARY KEY, generation INTEGER NOT NULL, next INTEGER NOT NULL, topicId TEXT NOT NULL) STRICT;
    `)
    for (const row of this.#database.prepare('SELECT * FROM positions').all())
      this.#positions.set(Number(row['partition']), {
        generation: Number(row['generation']),
        next: Number(row['next']),
        topicId: String(row['topicId']),
      })
    if (this.#positions.size === 0) this.#lostGenerations = newestGenerations(folder)
  }

  /**
   * The offsets from which partitions must be read. A partition that isn't in this list must be read from its
   * beginning.
   */
  get positions(): (readonly [partition: number, position: { next: number; topicId: string }])[] {
    return [...this.#positions].map(([partition, { next, topicId }]) => [partition, { next, topicId }])
  }

  get hasUncommitted(): boolean {
    return this.#moved.size > 0
  }

  /**
   * Remembers that a partition continues at another offset. `isOther`: true if offsets may belong to other
   * records than before, because the topic was created anew or lost records.
   */
  restart(partition: number, next: number, topicId: string, isOther: boolean): void {
    const generation = this.#generationOf(partition) + (isOther ? 1 : 0)
    this.#positions.set(partition, { generation, next, topicId })
  }

  /** Adds a block. All earlier blocks of its partition must have been added already. */
  add({ partition, offset, timestampMs, value }: IndexedBlock): void {
    const generation = this.#generationOf(partition)
    const place = { generation, next: offset }
    try {
      this.#addStates(partition, place, timestampMs, value)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      this.#unreadable++
    }
    this.#moved.set(partition, { generation, next: offset + 1 })
  }

  get pending(): number {
    return this.#rows
  }

  /** Commits the added blocks. */
  commit(): Indexed {
    const nowMs = this.#options.now()
    for (const slot of this.#touched) {
      slot.commit(this.#moved, nowMs)
      this.#unsynced.add(slot.slot)
    }
    this.#touched = new Set()
    for (const [partition, position] of this.#moved) this.#unwritten.set(partition, position)
    this.#moved.clear()
    if (nowMs - this.#syncedAtMs >= syncEveryMs) this.#commitPositions(nowMs)
    this.#closeOldest()
    const indexed = { rows: this.#rows, unreadable: this.#unreadable, expired: this.#expired }
    this.#rows = 0
    this.#unreadable = 0
    this.#expired = 0
    return indexed
  }

  /**
   * Removes files older than the retention, closes idle files, and writes positions. Returns the number of
   * removed files.
   */
  tend(): number {
    const { folder, keptMs, now } = this.#options
    const nowMs = now()
    const first = firstKeptSlot(nowMs, keptMs)
    for (const [slot, writer] of this.#slots) {
      const isIdle = writer.pending === 0 && nowMs - writer.lastUsedMs > closedAfterMs && slot < slotOf(nowMs)
      if (slot >= first && !isIdle) continue
      writer.close()
      this.#slots.delete(slot)
      this.#touched.delete(writer)
    }
    const expired = slotsIn(folder).filter((slot) => slot < first)
    for (const slot of expired) removeSlot(folder, slot)
    if (this.#unwritten.size > 0) this.#commitPositions(nowMs)
    return expired.length
  }

  /** Writes positions, and closes all files. */
  close(): void {
    this.#commitPositions(this.#options.now())
    for (const slot of this.#slots.values()) slot.close()
    this.#slots.clear()
    this.#database.close()
    this.#lock.close()
  }

  #generationOf(partition: number): number {
    return this.#positions.get(partition)?.generation ?? this.#lostGenerations.get(partition) ?? 0
  }

  #addStates(partition: number, place: Position, timestampMs: number, value: Buffer): void {
    const reader = this.#reader
    if (!reader.open(value)) {
      this.#unreadable++
      return
    }
    const { keptMs, now } = this.#options
    const first = firstKeptSlot(now(), keptMs)
    while (reader.next()) {
      const atMs = believedMs(reader.atMs, timestampMs)
      const slot = slotOf(atMs)
      if (slot < first) {
        this.#expired++
        continue
      }
      const writer = this.#slotOf(slot)
      if (writer.has(partition, place)) continue
      writer.add(reader, partition, atMs)
      this.#touched.add(writer)
      this.#rows++
    }
  }

  #slotOf(slot: number): SlotWriter {
    let writer = this.#slots.get(slot)
    if (writer === undefined) {
      writer = new SlotWriter(slot, slotPath(this.#options.folder, slot))
      this.#slots.set(slot, writer)
    }
    return writer
  }

  /**
   * Closes the least recently used slots if more slots are open than the limit allows. A slot is the file of
   * one hour. Many slots are open during a rebuild of the index, which goes through all hours.
   */
  #closeOldest(): void {
    const byUse = [...this.#slots].toSorted(([, a], [, b]) => a.lastUsedMs - b.lastUsedMs)
    for (const [slot, writer] of byUse.slice(0, Math.max(0, byUse.length - maxOpenSlots))) {
      writer.close()
      this.#slots.delete(slot)
    }
  }

  #commitPositions(nowMs: number): void {
    const { folder, sync = syncSlots } = this.#options
    this.#syncedAtMs = nowMs
    if (this.#unsynced.size > 0) sync(folder, this.#unsynced)
    this.#unsynced.clear()
    const put = this.#database.prepare('INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?)')
    this.#database.exec('BEGIN')
    for (const [partition, moved] of this.#unwritten) {
      const before = this.#positions.get(partition)
      if (before !== undefined && isBefore(moved, before)) continue
      const topicId = before?.topicId ?? ''
      this.#positions.set(partition, { ...moved, topicId })
      put.run(partition, moved.generation, moved.next, topicId)
    }
    this.#database.exec('COMMIT')
    this.#unwritten.clear()
  }
}

function newestGenerations(folder: string): Map<number, number> {
  const newest = new Map<number, number>()
  for (const slot of slotsIn(folder)) {
    for (const [partition, generation] of generationsIn(slotPath(folder, slot)))
      newest.set(partition, Math.max(generation, newest.get(partition) ?? 0))
  }
  return newest
}
