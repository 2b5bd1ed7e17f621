import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type BatchOperation, ClassicLevel } from 'classic-level'

export type StoreOperation =
  | { readonly type: 'put'; readonly key: string; readonly value: string }
  | { readonly type: 'put_bytes'; readonly key: string; readonly value: Buffer }
  | { readonly type: 'del'; readonly key: string }

/** Entries in the order of their keys, as they were when the reader was made. */
export type RangeReader = {
  /** The next entries, at most `count`; none when there are no more. */
  next(count: number): Promise<readonly (readonly [key: string, value: string])[]>
  close(): Promise<void>
}

/** What a unit keeps on disk. It throws only where the disk fails. */
export type StateStore = {
  getMany(keys: string[]): Promise<readonly (string | undefined)[]>
  getBytes(key: string): Promise<Buffer | undefined>
  /** All or nothing, also where the process is killed. In the order of the calls. */
  write(operations: readonly StoreOperation[]): Promise<void>
  range(range: { from: string; to: string }): RangeReader
  /**
   * Gives back the room of what was removed from a range. Until then it may stay on the disk, and in memory,
   * for good. One store after the other; nothing of one that is closed meanwhile.
   */
  compact(range: { from: string; to: string }): Promise<void>
  close(): Promise<void>
}

/** A store that could not be opened: `locked` is in use by somebody, `broken` has to be made anew. */
export type OpenedStore =
  | { ok: true; store: StateStore }
  | { ok: false; why: 'locked' | 'broken'; cause: unknown }

/**
 * Sizes of one unit of many in a process: what is read is mostly read once, so that a larger cache gains
 * little, and every write buffer may be there twice.
 */
const storeSizes = {
  cacheSize: 1024 ** 2,
  writeBufferSize: 2 * 1024 ** 2,
  maxOpenFiles: 100,
  // The files are mapped into memory, where they count as ours: compressed they are a third, and comparing
  // costs the same.
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

/** Of a store that is closed, or could not be opened. */
async function removeStore(location: string): Promise<void> {
  await rm(location, { recursive: true, force: true })
}

async function removeUnused(folder: string, isMeant: (name: string) => boolean): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!isMeant(name)) continue
    const location = join(folder, name)
    try {
      // It takes the store's lock for that.
      await ClassicLevel.destroy(location)
    } catch {
      continue
    }
    await removeStore(location)
  }
}

/** Where stores are, each at its location. */
export type Stores = {
  open(location: string): Promise<OpenedStore>
  /** Of a store that is closed, or could not be opened. */
  remove(location: string): Promise<void>
  /**
   * Removes those of a folder that are meant, by their names, and that nobody has open. Throws where the disk
   * fails.
   */
  removeUnused(folder: string, isMeant: (name: string) => boolean): Promise<void>
}

/** On disk, with LevelDB. */
export const levelStores: Stores = { open: openStore, remove: removeStore, removeUnused }

/**
 * Resolves when no store of this process is being compacted: each time takes one of the few threads that all
 * reads and writes of all stores share.
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
    // As a list, since a batch that is filled call by call keeps its memory until the garbage collector comes
    // to its handle, of which that looks small: tens of MB while a large audience is written.
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

/** The library wraps the fault of the disk in one that says that it isn't open. */
function codeOf(error: unknown): unknown {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  return typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined
}
