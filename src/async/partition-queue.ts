/** The room that is still free in a produce request. */
export type Room = { records: number; bytes: number }

/** An item that waits: one record, or several records that are sent together. */
export type Sized = { readonly bytes: number }

export type PartitionQueueOptions<T> = {
  readonly recordsOf: (item: T) => number
  /** The most bytes that one request may have for the partition: the largest batch that the topic accepts. */
  readonly batchBytes: number
  /**
   * The pause after the first of several failures in a row, in milliseconds. `maxBackoffMs` is the longest
   * pause.
   */
  readonly minBackoffMs: number
  readonly maxBackoffMs: number
}

/**
 * Holds the items that wait for one partition. Only one produce request with items of a partition is in
 * flight at a time. Items that the partition didn't take are the first items of the next request. So records
 * are written in the order in which they arrived.
 */
export class PartitionQueue<T extends Sized> {
  readonly topic: string
  readonly partition: number
  isSending = false
  readonly #options: PartitionQueueOptions<T>
  /** The items that wait, in the order in which they arrived. The first one is at the index `#head`. */
  #waiting: T[] = []
  #head = 0
  #failures = 0
  /** The number of items at the head that are sent alone, each in a request of its own. */
  #single = 0

  constructor(topic: string, partition: number, options: PartitionQueueOptions<T>) {
    this.topic = topic
    this.partition = partition
    this.#options = options
  }

  get isEmpty(): boolean {
    return this.#head === this.#waiting.length
  }

  /**
   * True after a failed request. In that case, the next request must not hold up the requests of other
   * partitions.
   */
  get isSick(): boolean {
    return this.#failures > 0
  }

  /** The pause between a failed request and the next request, in milliseconds. */
  get backoffMs(): number {
    const { minBackoffMs, maxBackoffMs } = this.#options
    return Math.min(maxBackoffMs, minBackoffMs * 2 ** (this.#failures - 1))
  }

  push(item: T): void {
    this.#waiting.push(item)
  }

  /**
   * Takes as many items from the head of the queue as `room` allows, and reduces `room`. With `isFirst`,
   * takes the first item even if it is larger than `room`.
   */
  take(room: Room, isFirst: boolean): readonly T[] {
    const { recordsOf, batchBytes } = this.#options
    const from = this.#head
    let bytes = 0
    for (let item = this.#waiting[from]; item !== undefined; item = this.#waiting[this.#head]) {
      const records = recordsOf(item)
      const isTooMuch = records > room.records || item.bytes > room.bytes || bytes + item.bytes > batchBytes
      if (isTooMuch && !(isFirst && this.#head === from)) break
      room.records -= records
      room.bytes -= item.bytes
      bytes += item.bytes
      this.#head++
      if (this.#single > 0) {
        this.#single--
        break
      }
    }
    return this.#taken(from)
  }

  worked(): void {
    this.isSending = false
    this.#failures = 0
  }

  /** Puts `items`, which were sent without success, back to the head of the queue. */
  failed(items: readonly T[]): void {
    this.isSending = false
    this.#failures++
    this.#putBack(items)
  }

  /**
   * Puts `items`, which were sent together, back to the head of the queue. Each of them is then sent alone.
   */
  split(items: readonly T[]): void {
    this.isSending = false
    this.#single += items.length
    this.#putBack(items)
  }

  /** Removes items from the head of the queue as long as `isToGo` returns true for them, and returns them. */
  takeWhile(isToGo: (item: T) => boolean): readonly T[] {
    const from = this.#head
    for (let item = this.#waiting[from]; item !== undefined; item = this.#waiting[this.#head]) {
      if (!isToGo(item)) break
      this.#head++
    }
    return this.#taken(from)
  }

  #putBack(items: readonly T[]): void {
    this.#waiting = [...items, ...this.#waiting.slice(this.#head)]
    this.#head = 0
  }

  #taken(from: number): readonly T[] {
    const taken = this.#waiting.slice(from, this.#head)
    // The items before the head stay in memory until this cut, so they must not outnumber the waiting items.
    if (this.#head >= 1_000 || this.#head * 2 >= this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#head)
      this.#head = 0
    }
    return taken
  }
}
