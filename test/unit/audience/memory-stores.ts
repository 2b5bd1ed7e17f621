import type {
  OpenedStore,
  RangeReader,
  StateStore,
  StoreOperation,
  Stores,
} from '../../../src/audience/store/store.ts'

/** The contents of a store on the disk of a simulated machine. They survive a crash of the program. */
type Disk = Map<string, string | Buffer>

/** The stores on the disks of all machines, by location. */
export type Disks = Map<string, Disk>

/** Stores in memory, as one program sees them. They have the same interface as the stores on disk. */
export class MemoryStores implements Stores {
  readonly #disks: Disks
  readonly #program = { isKilled: false }

  constructor(disks: Disks) {
    this.#disks = disks
  }

  open(location: string): Promise<OpenedStore> {
    let disk = this.#disks.get(location)
    if (disk === undefined) {
      disk = new Map()
      this.#disks.set(location, disk)
    }
    return Promise.resolve({ ok: true, store: new MemoryStore(disk, this.#program) })
  }

  remove(location: string): Promise<void> {
    this.#disks.delete(location)
    return Promise.resolve()
  }

  /** Does nothing, because a program in memory leaves no unused stores behind. */
  removeUnused(): Promise<void> {
    return Promise.resolve()
  }

  /** Ends the program. From now on nothing is written, and no call ever returns. */
  kill(): void {
    this.#program.isKilled = true
  }
}

class MemoryStore implements StateStore {
  readonly #disk: Disk
  readonly #program: { readonly isKilled: boolean }
  #isOpen = true

  constructor(disk: Disk, program: { readonly isKilled: boolean }) {
    this.#disk = disk
    this.#program = program
  }

  async getMany(keys: string[]): Promise<readonly (string | undefined)[]> {
    const texts = keys.map((key) => this.#disk.get(key)?.toString())
    await this.#wait()
    return texts
  }

  async getBytes(key: string): Promise<Buffer | undefined> {
    const value = this.#disk.get(key)
    await this.#wait()
    return value === undefined ? undefined : Buffer.from(value)
  }

  async write(operations: readonly StoreOperation[]): Promise<void> {
    await this.#wait()
    for (const operation of operations) {
      if (operation.type === 'del') this.#disk.delete(operation.key)
      else this.#disk.set(operation.key, operation.value)
    }
  }

  range({ from, to }: { from: string; to: string }): RangeReader {
    const entries = [...this.#disk]
      .filter(([key]) => key >= from && key < to)
      .map(([key, value]) => [key, value.toString()] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1))
    return {
      next: async (count) => {
        await this.#wait()
        // Returns few entries at a time, so that batches end at many places.
        return entries.splice(0, Math.min(count, mostEntries))
      },
      close: () => Promise.resolve(),
    }
  }

  /** Does nothing but wait, because removed entries take no room in memory. */
  compact(): Promise<void> {
    return this.#wait()
  }

  close(): Promise<void> {
    this.#isOpen = false
    return Promise.resolve()
  }

  async #wait(): Promise<void> {
    if (!this.#isOpen) throw new Error('the store is closed')
    // The wait is one to three turns of the event loop, so that calls overtake one another.
    for (let left = (waits++ % 3) + 1; left > 0; left--) await new Promise((resolve) => setImmediate(resolve))
    if (this.#program.isKilled) await new Promise(() => undefined)
    if (!this.#isOpen) throw new Error('the store is closed')
  }
}

const mostEntries = 3
let waits = 0
