import type { PropertyHeader } from '../message/record-headers.ts'

// Lets only one Identify at a time be under way for each ordering key. An ordering key is one property of one
// user in one space at one destination. If two Identifies of a key were under way at the same time, they
// could arrive in the wrong order. A key without an Identify takes no memory. The time to enter or leave a
// key doesn't depend on the number of keys.
//
// A new delivery has a newer value than the deliveries that wait for its key, so it replaces all of them. One
// that has waited, on a retry topic or in its queue, may be older or newer than the deliveries that wait, so
// it waits behind them. Queues aren't always in the order of the values, because a delivery from a lane joins
// the front of its queue. When such a delivery gets the key, the caller must decide whether to send it.

/** A delivery that may have to wait for its ordering key. */
export type Sequenced<D> = {
  readonly destinationId: string
  readonly property: PropertyHeader | undefined
  /** True for a retry, and for a delivery that was pulled from its queue. */
  readonly hasWaited: boolean
  readonly isAbandoned: boolean
  readonly isUncertain: boolean
  /** The ordering key, while this delivery holds it. */
  orderingKey: OrderingKey<D> | undefined
  /** The next delivery that waits for the same ordering key. */
  behind: D | undefined
  becomeUncertain(): void
}

/**
 * The delivery that holds an ordering key (`holder`), and the line of deliveries that wait for the key. Only
 * `OrderingKeys` changes these fields.
 */
export type OrderingKey<D> = { readonly key: string; holder: D; first: D | undefined; last: D | undefined }

export type OrderingKeysOptions<D> = {
  /**
   * Called for a waiting delivery that a newer delivery has replaced. The callback must end the replaced
   * delivery, which no longer waits in line.
   */
  superseded: (delivery: D) => void
  /**
   * Called when a waiting delivery gets its ordering key. The callback must not start the delivery at once.
   */
  next: (delivery: D) => void
}

export class OrderingKeys<D extends Sequenced<D>> {
  readonly #options: OrderingKeysOptions<D>
  readonly #orderingKeys = new Map<string, OrderingKey<D>>()
  #waiting = 0

  constructor(options: OrderingKeysOptions<D>) {
    this.#options = options
  }

  get size(): number {
    return this.#orderingKeys.size
  }

  get waiting(): number {
    return this.#waiting
  }

  /**
   * Takes the ordering key for a delivery, or lets the delivery wait for the key. If the result is true, the
   * delivery holds its key, and `leave` must be called when the delivery ends. If the result is false, the
   * delivery has to wait until `next` or `superseded` is called for it.
   */
  enter(delivery: D, property: PropertyHeader): boolean {
    const key = keyOf(delivery.destinationId, property)
    const orderingKey = this.#orderingKeys.get(key)
    if (orderingKey === undefined) {
      delivery.orderingKey = { key, holder: delivery, first: undefined, last: undefined }
      this.#orderingKeys.set(key, delivery.orderingKey)
      return true
    }
    if (!delivery.hasWaited) this.#supersedeWaiting(orderingKey, delivery)
    this.#append(orderingKey, delivery)
    return false
  }

  /**
   * Passes the key from `holder` to the new delivery that waits behind it, and returns the new delivery. If
   * no new delivery waits, returns `holder`.
   */
  newestOf(holder: D): D {
    const { orderingKey } = holder
    const newer = orderingKey?.first
    if (orderingKey === undefined || newer === undefined) return holder
    if (newer.hasWaited || newer.isAbandoned) return holder
    this.#shift(orderingKey)
    pass(orderingKey, holder, newer)
    if (holder.isUncertain) newer.becomeUncertain()
    return newer
  }

  /**
   * Passes the key of a delivery to the next delivery in line. If the delivery holds no key, does nothing.
   */
  leave(delivery: D): void {
    const { orderingKey } = delivery
    if (orderingKey === undefined) return
    const next = this.#shift(orderingKey)
    if (next === undefined) {
      delivery.orderingKey = undefined
      this.#orderingKeys.delete(orderingKey.key)
      return
    }
    pass(orderingKey, delivery, next)
    this.#options.next(next)
  }

  /**
   * Removes the waiting deliveries for which `isToGo` returns true, and returns them. All other deliveries
   * keep their order.
   */
  takeWaiting(isToGo: (delivery: D) => boolean): D[] {
    const taken: D[] = []
    for (const orderingKey of this.#orderingKeys.values()) {
      const line: D[] = []
      for (let one = this.#shift(orderingKey); one !== undefined; one = this.#shift(orderingKey))
        line.push(one)
      for (const one of line) {
        if (isToGo(one)) taken.push(one)
        else this.#append(orderingKey, one)
      }
    }
    return taken
  }

  #supersedeWaiting(orderingKey: OrderingKey<D>, by: D): void {
    for (let older = this.#shift(orderingKey); older !== undefined; older = this.#shift(orderingKey)) {
      // A request of the older delivery may still take effect late. The newer delivery then has to correct
      // it.
      if (older.isUncertain) by.becomeUncertain()
      this.#options.superseded(older)
    }
  }

  #append(orderingKey: OrderingKey<D>, delivery: D): void {
    this.#waiting++
    if (orderingKey.last === undefined) orderingKey.first = delivery
    else orderingKey.last.behind = delivery
    orderingKey.last = delivery
  }

  #shift(orderingKey: OrderingKey<D>): D | undefined {
    const { first } = orderingKey
    if (first === undefined) return undefined
    this.#waiting--
    orderingKey.first = first.behind
    first.behind = undefined
    if (orderingKey.first === undefined) orderingKey.last = undefined
    return first
  }
}

function pass<D extends Sequenced<D>>(orderingKey: OrderingKey<D>, from: D, to: D): void {
  from.orderingKey = undefined
  to.orderingKey = orderingKey
  orderingKey.holder = to
}

/**
 * Returns the text of an ordering key. It contains the lengths of its parts, so it is unambiguous, whatever
 * the ids contain.
 */
function keyOf(destinationId: string, { userId, spaceId, property }: PropertyHeader): string {
  return `${destinationId.length},${spaceId.length},${property.length},${destinationId}${spaceId}${property}${userId}`
}
