import type { StateStore, StoreOperation } from '../store/store.ts'
import { parted, stagedPartKey, stagedRunKey } from '../store/store-keys.ts'

/**
 * Sorts the users of one sync on disk, so that the memory doesn't depend on the size of the sync. Users are
 * collected into runs. A run is a part of the users that fits into memory. Each run is sorted and written to
 * disk in chunks. `sorted` merges the runs. User ids are escaped in the same way as in the keys of the store,
 * so that they have the same order as the keys.
 */
export class Staging {
  readonly #store: StateStore
  /** The number that distinguishes this sync from the other staged syncs. */
  readonly #number: number
  #gathered: string[] = []
  /** How many chunks on disk each run has. A run is a sorted list of users. */
  readonly #runs: number[] = []
  #parts = 0
  #bytes = 0

  constructor(store: StateStore, number: number) {
    this.#store = store
    this.#number = number
  }

  /** The number of users in memory. */
  get gathered(): number {
    return this.#gathered.length
  }

  /** The total bytes of all parts of the sync. */
  get bytes(): number {
    return this.#bytes
  }

  /**
   * Adds the users of a part, and stores the bytes of the part. Resolves with the number by which `partBytes`
   * finds the bytes.
   */
  async add(userIds: readonly string[], bytes: Buffer): Promise<number> {
    const part = this.#parts++
    this.#bytes += bytes.length
    const operations: StoreOperation[] = [
      { type: 'put_bytes', key: stagedPartKey(this.#number, part), value: bytes },
    ]
    for (const userId of userIds) {
      this.#gathered.push(userId)
      if (this.#gathered.length === usersOfRun) this.#endRun(operations)
    }
    await this.#store.write(operations)
    return part
  }

  /** Writes the users in memory to disk, to free the memory. */
  async spill(): Promise<void> {
    const operations: StoreOperation[] = []
    this.#endRun(operations)
    await this.#store.write(operations)
  }

  partBytes(part: number): Promise<Buffer | undefined> {
    return this.#store.getBytes(stagedPartKey(this.#number, part))
  }

  /**
   * Returns a function that reads the users in batches. The users are in ascending order, and each user
   * occurs once. An empty batch means that there are no more users. No part may be added after this call.
   */
  async sorted(): Promise<() => Promise<readonly string[]>> {
    this.#gathered.sort()
    const readers = this.#runs.map((chunks, run) => this.#readerOf(run, chunks))
    const rest = this.#gathered
    if (rest.length > 0) {
      let isRead = false
      readers.push(() => {
        const chunk = isRead ? [] : rest
        isRead = true
        return Promise.resolve(chunk)
      })
    }
    const merge = new Merge(readers)
    await merge.begin()
    return () => merge.next()
  }

  /** Yields the operations that remove all data that this object has written. */
  *removal(): Generator<StoreOperation> {
    for (let part = 0; part < this.#parts; part++) {
      yield { type: 'del', key: stagedPartKey(this.#number, part) }
    }
    for (const [run, chunks] of this.#runs.entries()) {
      for (let chunk = 0; chunk < chunks; chunk++) {
        yield { type: 'del', key: stagedRunKey(this.#number, run, chunk) }
      }
    }
  }

  #endRun(operations: StoreOperation[]): void {
    const users = this.#gathered
    if (users.length === 0) return
    this.#gathered = []
    users.sort()
    const run = this.#runs.length
    let chunks = 0
    for (let at = 0; at < users.length; at += usersOfChunk) {
      const value = users.slice(at, at + usersOfChunk).join(parted)
      operations.push({ type: 'put', key: stagedRunKey(this.#number, run, chunks), value })
      chunks++
    }
    this.#runs.push(chunks)
  }

  #readerOf(run: number, chunks: number): ChunkReader {
    let chunk = 0
    return async () => {
      if (chunk === chunks) return []
      const [value] = await this.#store.getMany([stagedRunKey(this.#number, run, chunk)])
      if (value === undefined) throw new Error('the store has lost users of a sync that it was given')
      chunk++
      return value.split(parted)
    }
  }
}

/**
 * The number of users that are sorted in memory and then written to disk together, as a run. A sync with ten
 * million users in one unit has 1,200 runs.
 */
const usersOfRun = 8_192
/**
 * The number of users in one chunk of a run. While the sorted runs are merged, one chunk of each run is in
 * memory.
 */
const usersOfChunk = 256
/**
 * A function that returns the next users of a run, in ascending order. Returns an empty list at the end of
 * the run.
 */
type ChunkReader = () => Promise<readonly string[]>

type Run = { readonly read: ChunkReader; users: readonly string[]; at: number; user: string }

/** Merges sorted runs of users. A heap orders the runs by their next users. */
class Merge {
  readonly #readers: readonly ChunkReader[]
  /**
   * A binary heap of runs: the next user of a run is never lower than the next user of the run's parent,
   * which is at `(index - 1) >> 1`.
   */
  readonly #heap: Run[] = []
  #lastUser: string | undefined

  constructor(readers: readonly ChunkReader[]) {
    this.#readers = readers
  }

  async begin(): Promise<void> {
    for (const read of this.#readers) {
      const users = await read()
      const user = users[0]
      if (user === undefined) continue
      this.#heap.push({ read, users, at: 0, user })
      this.#rise(this.#heap.length - 1)
    }
  }

  async next(): Promise<readonly string[]> {
    const batch: string[] = []
    for (let top = this.#heap[0]; top !== undefined && batch.length < usersOfBatch; top = this.#heap[0]) {
      if (top.user !== this.#lastUser) {
        this.#lastUser = top.user
        batch.push(top.user)
      }
      const following = top.users[++top.at]
      if (following === undefined) await this.#refill(top)
      else {
        top.user = following
        this.#sink(top)
      }
    }
    return batch
  }

  async #refill(top: Run): Promise<void> {
    top.users = await top.read()
    top.at = 0
    const user = top.users[0]
    if (user !== undefined) {
      top.user = user
      this.#sink(top)
      return
    }
    const end = this.#heap.pop()
    if (end === undefined || end === top) return
    this.#heap[0] = end
    this.#sink(end)
  }

  #rise(from: number): void {
    const heap = this.#heap
    let at = from
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = heap[parent]
      const below = heap[at]
      if (above === undefined || below === undefined || above.user <= below.user) return
      heap[parent] = below
      heap[at] = above
      at = parent
    }
  }

  /** Restores the order of the heap: moves its first run down until no run below it has a lower next user. */
  #sink(run: Run): void {
    const heap = this.#heap
    let at = 0
    for (;;) {
      let least = 2 * at + 1
      let child = heap[least]
      if (child === undefined) break
      const other = heap[least + 1]
      if (other !== undefined && other.user < child.user) {
        child = other
        least++
      }
      if (run.user <= child.user) break
      heap[at] = child
      at = least
    }
    heap[at] = run
  }
}

const usersOfBatch = 2_048
