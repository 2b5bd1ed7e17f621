import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type BatchOperation, ClassicLevel } from 'classic-level'

export type StoreOperation =
  | { readonly type: 'put'; readonly key: string; readonly value: string }
  | { readonly type: 'put_bytes'; readonly key: string; readonly value: Buffer }
  | { readonly type: 'del'; readonly key: string }

/**
 * A reader of a range of entries, in the order of their keys. It reads the entries as they were when the
 * reader was made.
 */
export type RangeReader = {
  /** Returns the next entries, at most `count` of them. Returns an empty list at the end of the range. */
  next(count: number): Promise<readonly (readonly [key: string, value: string])[]>
  close(): Promise<void>
}

/** The store of a unit on disk. Its methods fail only if the disk fails. */
export type StateStore = {
  getMany(keys: string[]): Promise<readonly (string | undefined)[]>
  getBytes(key: string): Promise<Buffer | undefined>
  /**
   * Writes all operations or no operation, even if the process is killed. Writes are applied in the order of
   * the calls.
   */
  write(operations: readonly StoreOperation[]): Promise<void>
  range(range: { from: string; to: string }): RangeReader
  /**
   * Frees the disk and memory of entries that were removed from a range. Without this call, the removed
   * entries may stay there forever. Only one store is compacted at a time. A store that is closed while
   * it waits is skipped.
   */
  compact(range: { from: string; to: string }): Promise<void>
  close(): Promise<void>
}

/**
 * The result of opening a store. `locked`: another process has the store open. `broken`: the store has to be
 * created again.
 */
export type OpenedStore =
  | { ok: true; store: StateStore }
  | { ok: false; why: 'locked' | 'broken'; cause: unknown }

/** Limit on the files that LevelDB opens for one unit, in addition to its log files and its lock. */
export const maxStoreFiles = 100

/**
 * LevelDB's sizes for one unit. A process has many units, and each write buffer may exist twice. Most data is
 * read only once, so a larger cache would gain little.
 */
const storeSizes = {
  cacheSize: 1024 ** 2,
  writeBufferSize: 2 * 1024 ** 2,
  maxOpenFiles: maxStoreFiles,
  // LevelDB maps the files into memory, so their size counts as memory of the process. Compressed files have
  // a third of the size, and to compare keys takes the same time.
  compression: true,
} as const

const text = { keyEncoding: 'utf8', valueEncoding: 'utf8' } as const

function levelOperation(operation: StoreOperation): BatchOperation<ClassicLevel, string, string | Buffer> {
  return operation.type === 'put_bytes' ? { ...operation, type: 'put', valueEncoding: 'buffer' } : operation
}

async function openStore(location: string): Promise<OpenedStore> {
  const level = new ClassicLevel(location, text)
  try {
    await level.open(storeSizes)
  } catch (error) {
    const why = codeOf(error) === 'LEVEL_LOCKED' ? 'locked' : 'broken'
    return { ok: false, why, cause: error }
  }
  return { ok: true, store: new LevelStore(level) }
}

/** Removes a store that is closed or that could not be opened. */
async function removeStore(location: string): Promise<void> {
  await rm(location, { recursive: true, force: true })
}

async function removeUnused(folder: string, isMeant: (name: string) => boolean): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!isMeant(name)) continue
    const location = join(folder, name)
    try {
      // This call takes the store's lock, so it fails if another process has the store open.
      await ClassicLevel.destroy(location)
    } catch {
      continue
    }
    await removeStore(location)
  }
}

/** The operations on the stores of this machine. A location identifies a store. */
export type Stores = {
  open(location: string): Promise<OpenedStore>
  /** Removes a store that is closed or that could not be opened. */
  remove(location: string): Promise<void>
  /**
   * Removes the stores in a folder whose names `isMeant` selects. Skips a store that a process has open.
   * Throws if the disk fails.
   */
  removeUnused(folder: string, isMeant: (name: string) => boolean): Promise<void>
}

export const levelStores: Stores = { open: openStore, remove: removeStore, removeUnused }

/**
 * Resolves when all compactions of stores that this process has started so far have ended. Only one store is
 * compacted at a time, because a compaction occupies one of the few threads that all stores share for their
 * reads and writes.
 */
let compacting = Promise.resolve()

class LevelStore implements StateStore {
  readonly #level: ClassicLevel

  constructor(level: ClassicLevel) {
    this.#level = level
  }

  getMany(keys: string[]): Promise<readonly (string | undefined)[]> {
    return this.#level.getMany(keys)
  }

  getBytes(key: string): Promise<Buffer | undefined> {
    return this.#level.get<string, Buffer>(key, { keyEncoding: 'utf8', valueEncoding: 'buffer' })
  }

  async write(operations: readonly StoreOperation[]): Promise<void> {
    // The operations are passed as a list. A batch that is filled call by call keeps its memory until the
    // garbage collector frees the batch's handle. The handle looks small to the garbage collector, so it
    // isn't freed soon. While a large audience is written, such batches would take tens of MB.
    await this.#level.batch<string, string | Buffer>(operations.map(levelOperation), {})
  }

  range({ from, to }: { from: string; to: string }): RangeReader {
    const iterator = this.#level.iterator({ gte: from, lt: to })
    return {
      next: (count) => iterator.nextv(count),
      close: () => iterator.close(),
    }
  }

  async compact({ from, to }: { from: string; to: string }): Promise<void> {
    const before = compacting
    const { promise, resolve } = Promise.withResolvers<void>()
    compacting = promise
    try {
      await before
      if (this.#level.status === 'open') await this.#level.compactRange(from, to)
    } finally {
      resolve()
    }
  }

  close(): Promise<void> {
    return this.#level.close()
  }
}

/**
 * Returns the code of a failure. The library wraps an error of the disk in another error, which says that the
 * store isn't open.
 */
function codeOf(error: unknown): unknown {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  return typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined
}

/**
 * Reads all entries of a range, and closes the reader. Use this function only for ranges that are known to be
 * short.
 */
export async function entriesOf(reader: RangeReader): Promise<(readonly [key: string, value: string])[]> {
  const all: (readonly [key: string, value: string])[] = []
  try {
    for (let entries = await reader.next(1_000); entries.length > 0; entries = await reader.next(1_000)) {
      all.push(...entries)
    }
  } finally {
    await reader.close()
  }
  return all
}
