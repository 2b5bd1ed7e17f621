/** A delivery that waits, and a link to the delivery behind it. */
type Queued<D> = { readonly delivery: D; readonly sinceMs: number; behind: Queued<D> | undefined }

/**
 * A queue: first in, first out. An empty queue allocates nothing but its own object, because each destination
 * has several queues.
 */
export class Queue<D> {
  #first: Queued<D> | undefined
  #last: Queued<D> | undefined

  get oldest(): Queued<D> | undefined {
    return this.#first
  }

  push(delivery: D, sinceMs: number): void {
    const item: Queued<D> = { delivery, sinceMs, behind: undefined }
    if (this.#last === undefined) this.#first = item
    else this.#last.behind = item
    this.#last = item
  }

  /** Puts back a delivery that was the first: before those that wait for no longer than it. */
  putBack(delivery: D, sinceMs: number): void {
    let before: Queued<D> | undefined
    let behind = this.#first
    while (behind !== undefined && behind.sinceMs < sinceMs) {
      before = behind
      behind = behind.behind
    }
    const item: Queued<D> = { delivery, sinceMs, behind }
    if (before === undefined) this.#first = item
    else before.behind = item
    if (behind === undefined) this.#last = item
  }

  shift(): D | undefined {
    const item = this.#first
    if (item === undefined) return undefined
    this.#first = item.behind
    if (item.behind === undefined) this.#last = undefined
    // Otherwise, if the garbage collector has moved the item to its old generation, this link would keep all
    // later items alive until the next collection of that generation.
    item.behind = undefined
    return item.delivery
  }

  /** All deliveries, in their order. */
  *items(): Generator<D> {
    for (let item = this.#first; item !== undefined; item = item.behind) yield item.delivery
  }

  /** The oldest delivery for which `counts` returns true, and since when it waits. */
  oldestOf(counts: (delivery: D) => boolean): Queued<D> | undefined {
    let item = this.#first
    while (item !== undefined && !counts(item.delivery)) item = item.behind
    return item
  }

  remove(isToGo: (delivery: D) => boolean): D[] {
    const removed: D[] = []
    let item = this.#first
    this.#first = undefined
    this.#last = undefined
    for (; item !== undefined; item = item.behind) {
      if (isToGo(item.delivery)) removed.push(item.delivery)
      else this.push(item.delivery, item.sinceMs)
    }
    return removed
  }
}
