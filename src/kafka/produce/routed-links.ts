import type { Kafka } from 'kafkajs'
import type { Route } from '../../async/partition-dispatch.ts'
import { type LinkOptions, type LinkTimeouts, ProduceLink } from './produce-link.ts'

/**
 * Two sets of connections for writing records, one for each route. Producers that aren't idempotent use them:
 * the caller must have only one request for a partition under way at a time. Otherwise records that are sent
 * again after a lost answer would be out of order.
 */
export class RoutedLinks {
  readonly main: ProduceLink
  readonly #isolated: ProduceLink

  constructor(...options: [kafka: Kafka, timeouts: LinkTimeouts, options?: LinkOptions]) {
    this.main = new ProduceLink(...options)
    this.#isolated = new ProduceLink(...options)
  }

  on(route: Route): ProduceLink {
    return route === 'main' ? this.main : this.#isolated
  }

  /** See `ProduceLink.leadersOf`. */
  leadersOf(topic: string): ReadonlyMap<number, number> {
    return this.main.leadersOf(topic)
  }

  /** See `OpenCluster.readsFromMs`. */
  get readsFromMs(): number {
    return Math.max(this.main.readsFromMs, this.#isolated.readsFromMs)
  }

  async close(): Promise<void> {
    await Promise.all([this.main.close(), this.#isolated.close()])
  }
}
