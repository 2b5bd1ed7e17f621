import type { Change } from './changing-group.ts'
import type { Delivery } from './delivery-book.ts'

/**
 * How long deliveries may still arrive after a fault, in milliseconds. They were in flight when the worker
 * learned that it had lost its partitions, and the receiver may read them late.
 */
export const inFlightMs = 5_000

/**
 * Returns true if the change is a fault. A worker can't prepare for a fault, so deliveries that it had begun
 * may be repeated.
 */
export function isFault({ kind }: Change): boolean {
  return kind === 'kill' || kind === 'freeze'
}

/**
 * Returns the kills and freezes that explain a repeat. Such a fault came between the first and the last
 * delivery, or less than `inFlightMs` before the first. It hit a worker that had made one of the deliveries.
 * `repeat` holds all deliveries of a message to a destination, in order.
 */
export function faultsOf(repeat: readonly Delivery[], faults: readonly Change[]): Change[] {
  const firstMs = repeat[0]?.arrivedMs ?? 0
  const lastMs = repeat.at(-1)?.arrivedMs ?? 0
  return faults.filter(
    ({ worker, fromMs, toMs }) =>
      firstMs <= toMs + inFlightMs &&
      lastMs >= fromMs &&
      repeat.some((delivery) => delivery.worker === worker),
  )
}
