import type { Change } from './changing-group.ts'
import type { Delivery } from './delivery-book.ts'

/** What a worker had in flight when it learned that it had lost its partitions, read by a receiver that is behind. */
export const inFlightMs = 5_000

/** Whether it is one that a worker has not planned, and that may repeat what it had begun. */
export function isFault({ kind }: Change): boolean {
  return kind === 'kill' || kind === 'freeze'
}

/** The kills and stops that a message was repeated across, of a worker that had delivered it. `repeat`: all its deliveries to a destination, in order. */
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
