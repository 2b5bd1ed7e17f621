/**
 * Merges the records of several logs. At each step, compares the next records of all logs, and yields the
 * lowest one. The records of one log keep their order, even if `compare` would order them in another way.
 */
export async function* merged<T>(
  logs: readonly AsyncIterable<readonly T[]>[],
  compare: (a: T, b: T) => number,
): AsyncGenerator<T, void> {
  const cursors = logs.map((log) => new Cursor(log))
  try {
    await Promise.all(cursors.map((cursor) => cursor.advance()))
    for (;;) {
      const lowest = lowestOf(cursors, compare)
      if (lowest?.head === undefined) return
      yield lowest.head
      if (lowest.isLastOfBatch) await lowest.advance()
      else lowest.step()
    }
  } finally {
    await Promise.all(cursors.map((cursor) => cursor.close()))
  }
}

function lowestOf<T>(cursors: readonly Cursor<T>[], compare: (a: T, b: T) => number): Cursor<T> | undefined {
  let lowest: Cursor<T> | undefined
  for (const cursor of cursors) {
    if (cursor.head === undefined) continue
    if (lowest?.head === undefined || compare(cursor.head, lowest.head) < 0) lowest = cursor
  }
  return lowest
}

class Cursor<T> {
  readonly #batches: AsyncIterator<readonly T[]>
  #batch: readonly T[] = []
  #at = 0

  constructor(log: AsyncIterable<readonly T[]>) {
    this.#batches = log[Symbol.asyncIterator]()
  }

  get head(): T | undefined {
    return this.#batch[this.#at]
  }

  get isLastOfBatch(): boolean {
    return this.#at + 1 >= this.#batch.length
  }

  step(): void {
    this.#at++
  }

  /** Moves to the first record of the next batch that isn't empty. */
  async advance(): Promise<void> {
    this.#at = 0
    do {
      const next = await this.#batches.next()
      this.#batch = next.done === true ? [] : next.value
      if (next.done === true) return
    } while (this.#batch.length === 0)
  }

  async close(): Promise<void> {
    await this.#batches.return?.()
  }
}
