import type { Delivery } from './delivery.ts'

/**
 * Holds the deliveries of units that stand still, since what becomes of them could not be written. Nothing of
 * such a unit is begun: an outage of ours must not use up a customer's tries.
 */
export class StandingUnits {
  readonly #deliveries = new Map<number, Delivery[]>()

  /** Deliveries that stand still. */
  get count(): number {
    let count = 0
    for (const deliveries of this.#deliveries.values()) count += deliveries.length
    return count
  }

  has({ pending }: Delivery): boolean {
    return this.#deliveries.size > 0 && this.#deliveries.has(pending.record.partition)
  }

  /** Takes a delivery whose unit stands still. Returns false where its unit doesn't. */
  hold(delivery: Delivery): boolean {
    if (this.#deliveries.size === 0) return false
    const deliveries = this.#deliveries.get(delivery.pending.record.partition)
    if (deliveries === undefined) return false
    // Time in which nothing may be started is nobody's waiting.
    delivery.queuedAtMs = 0
    deliveries.push(delivery)
    return true
  }

  stop(unit: number): void {
    if (!this.#deliveries.has(unit)) this.#deliveries.set(unit, [])
  }

  /** Lets the unit go on. Returns its deliveries, in the order of their coming. */
  release(unit: number): readonly Delivery[] {
    const deliveries = this.#deliveries.get(unit) ?? []
    this.#deliveries.delete(unit)
    return deliveries
  }

  /** Takes out those that are to go. */
  take(isToGo: (delivery: Delivery) => boolean): readonly Delivery[] {
    const taken: Delivery[] = []
    for (const [unit, deliveries] of this.#deliveries) {
      taken.push(...deliveries.filter(isToGo))
      this.#deliveries.set(
        unit,
        deliveries.filter((delivery) => !isToGo(delivery)),
      )
    }
    return taken
  }
}
