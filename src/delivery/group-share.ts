import type { Rate } from '../async/token-bucket.ts'
import type { DestinationDefinition } from './endpoint.ts'

/**
 * The fraction of the consumer group's partitions that this worker has. A rate limit applies to the whole
 * group, so each worker may use only its fraction of the limit, and what others lend it.
 */
export class GroupShare {
  readonly #differenceOf: (destinationId: string) => number
  #share = 1

  /**
   * `differenceOf` returns by how much this worker's part of a destination's rate is larger than its fraction
   * of the partitions. Negative if this worker lends a part to others. The sum with the fraction is above 0.
   */
  constructor(differenceOf: (destinationId: string) => number = () => 0) {
    this.#differenceOf = differenceOf
  }

  /** Sets the fraction of the group's partitions that this worker has, 0 to 1. */
  set(share: number): void {
    this.#share = share
  }

  /** Returns the fraction, or 1 if the worker has no partitions. */
  get fraction(): number {
    return this.#share === 0 ? 1 : this.#share
  }

  /**
   * Returns this worker's part of a destination's rate limit at present. `undefined`: the destination has no
   * limit, or the worker has no partitions.
   */
  rateOf(destination: Pick<DestinationDefinition, 'id' | 'rateLimit'> | undefined): Rate | undefined {
    // Most destinations have no limit, and nothing is lent of it. So nobody is asked for them.
    if (destination?.rateLimit === undefined || this.#share === 0) return undefined
    return partOf(destination.rateLimit, this.#share + this.#differenceOf(destination.id))
  }

  /**
   * Returns this worker's part as if nobody lent anything. The parts of all workers add up to the limit.
   */
  evenRateOf({ rateLimit }: Pick<DestinationDefinition, 'rateLimit'>): Rate | undefined {
    return partOf(rateLimit, this.#share)
  }
}

function partOf(limit: Rate | undefined, share: number): Rate | undefined {
  return limit && { perSecond: limit.perSecond * share, burst: Math.max(1, Math.floor(limit.burst * share)) }
}
