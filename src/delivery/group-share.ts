import type { Rate } from '../async/token-bucket.ts'
import type { DestinationDefinition } from './endpoint.ts'

/**
 * The fraction of the consumer group's partitions that this worker has. A rate limit applies to the whole
 * group, so each worker may use only its fraction of the limit.
 */
export class GroupShare {
  #share = 1

  /** Sets the fraction of the group's partitions that this worker has, 0 to 1. */
  set(share: number): void {
    this.#share = share
  }

  /** Returns the fraction, or 1 if the worker has no partitions. */
  get fraction(): number {
    return this.#share === 0 ? 1 : this.#share
  }

  /**
   * Returns this worker's fraction of a destination's rate limit. `undefined`: the destination has no limit,
   * or the worker has no partitions.
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
