/** Walks through what comes in batches, one item at a time. An empty batch is the end. */
export class Cursor<T> {
  readonly #read: () => Promise<readonly T[]>
  #batch: readonly T[] = []
  #at = 0
  #isEnded = false
  /** `undefined` at the end, and before `refill` where that is needed. */
  current: T | undefined

  constructor(read: () => Promise<readonly T[]>) {
    this.#read = read
  }

  /** A batch was walked through, and there may be another. */
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
