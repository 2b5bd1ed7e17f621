import type { Delivery } from './delivery.ts'

/**
 * Holds the deliveries of stopped units. A unit is stopped while the outcomes of its deliveries can't be
 * written to Kafka. No attempt of such a unit is started, because an outage of Sluice or Kafka must not use
 * up the tries that a customer's message gets.
 */
export class StoppedUnits {
  readonly #deliveries = new Map<number, Delivery[]>()

  get count(): number {
    let count = 0
    for (const deliveries of this.#deliveries.values()) count += deliveries.length
    return count
  }

  has({ pending }: Delivery): boolean {
    return this.#deliveries.size > 0 && this.#deliveries.has(pending.record.partition)
  }

  /** If the unit of the delivery is stopped, holds the delivery and returns true. Otherwise returns false. */
  hold(delivery: Delivery): boolean {
    if (this.#deliveries.size === 0) return false
    const deliveries = this.#deliveries.get(delivery.pending.record.partition)
    if (deliveries === undefined) return false
    // The time for which the unit is stopped doesn't count as time in the lane.
    delivery.queuedAtMs = 0
    deliveries.push(delivery)
    return true
  }

  stop(unit: number): void {
    if (!this.#deliveries.has(unit)) this.#deliveries.set(unit, [])
  }

  /** Resumes the unit. Returns its held deliveries in the order in which they came. */
  release(unit: number): readonly Delivery[] {
    const deliveries = this.#deliveries.get(unit) ?? []
    this.#deliveries.delete(unit)
    return deliveries
  }

  /** Removes the deliveries for which `isToGo` returns true, and returns them. */
  take(isToGo: (delivery: Delivery) => boolean): readonly Delivery[] {
    const taken: Delivery[] = []
    for (const [unit, deliveries] of this.#deliveries) {
      const kept: Delivery[] = []
      for (const delivery of deliveries) (isToGo(delivery) ? taken : kept).push(delivery)
      this.#deliveries.set(unit, kept)
    }
    return taken
  }
}
