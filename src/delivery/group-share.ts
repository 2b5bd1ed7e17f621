import type { Rate } from '../pacing/token-bucket.ts'
import type { DestinationDefinition } from './endpoint.ts'

/**
 * The share of the group's partitions that this worker has. Rate limits hold for the whole group, and each
 * worker keeps to its share.
 */
export class GroupShare {
  #share = 1

  /** Sets this worker's share, 0 to 1. */
  set(share: number): void {
    this.#share = share
  }

  /**
   * Returns this worker's share of a destination's rate limit. `undefined`: the destination has no limit, or
   * the worker has no partitions.
   */
  rateOf(destination: Pick<DestinationDefinition, 'rateLimit'> | undefined): Rate | undefined {
    const limit = destination?.rateLimit
    if (limit === undefined || this.#share === 0) return undefined
    return {
      perSecond: limit.perSecond * this.#share,
      burst: Math.max(1, Math.floor(limit.burst * this.#share)),
    }
  }
}
