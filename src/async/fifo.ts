/**
 * A queue, first in, first out. The cost of adding or removing one item doesn't depend on the length of the
 * queue.
 */
export class Fifo<T> {
  #items: (T | undefined)[] = []
  #head = 0

  get length(): number {
    return this.#items.length - this.#head
  }

  push(item: T): void {
    this.#items.push(item)
  }

  peek(): T | undefined {
    return this.#items[this.#head]
  }

  shift(): T | undefined {
    const item = this.#items[this.#head]
    if (item === undefined) return undefined
    this.#items[this.#head++] = undefined
    if (this.#head >= minGone && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }

  /**
   * Removes the items for which `isToGo` returns true, and returns them. The other items keep their order.
   */
  take(isToGo: (item: T) => boolean): T[] {
    const gone: T[] = []
    const kept: T[] = []
    for (let item = this.shift(); item !== undefined; item = this.shift()) {
      if (isToGo(item)) gone.push(item)
      else kept.push(item)
    }
    this.#items = kept
    this.#head = 0
    return gone
  }
}

const minGone = 1_024
