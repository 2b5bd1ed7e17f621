/** Goes through batches of items, one item at a time. An empty batch means that there are no more items. */
export class Cursor<T> {
  readonly #read: () => Promise<readonly T[]>
  #batch: readonly T[] = []
  #at = 0
  #isEnded = false
  /** The current item. `undefined` at the end, and when `refill` has to be called. */
  current: T | undefined

  constructor(read: () => Promise<readonly T[]>) {
    this.#read = read
  }

  /** True if the current batch is used up and another batch may follow. */
  get isToRefill(): boolean {
    return this.current === undefined && !this.#isEnded
  }

  async refill(): Promise<void> {
    this.#batch = await this.#read()
    this.#at = 0
    this.#isEnded = this.#batch.length === 0
    this.current = this.#batch[0]
  }

  advance(): void {
    this.current = this.#batch[++this.#at]
  }
}
