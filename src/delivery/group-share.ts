import type { Rate } from '../pacing/token-bucket.ts'
import type { DestinationDefinition } from './endpoint.ts'

/**
 * Our part of the group's partitions: rate limits hold for the whole group, and we keep to our share of each.
 */
export class GroupShare {
  #share = 1

  /** Sets our part, 0 to 1. */
  set(share: number): void {
    this.#share = share
  }

  /** Gives our share of a destination's rate limit; `undefined`: it has none, or nothing is ours. */
  rateOf(destination: Pick<DestinationDefinition, 'rateLimit'> | undefined): Rate | undefined {
    const limit = destination?.rateLimit
    if (limit === undefined || this.#share === 0) return undefined
    return {
      perSecond: limit.perSecond * this.#share,
      burst: Math.max(1, Math.floor(limit.burst * this.#share)),
    }
  }
}
