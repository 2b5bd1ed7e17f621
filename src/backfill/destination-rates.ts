import { TokenBucket } from '../async/token-bucket.ts'

export type DestinationRatesOptions = {
  /** The number of Identifies per second that all workers together may send to one destination. */
  readonly perSecond: number
  /** The number of units. */
  readonly partitions: number
  readonly ownUnits: () => number
}

/**
 * Limits the rate at which first syncs are sent to each destination. If a destination gets first syncs of two
 * spaces, the limit applies to both together.
 */
export class DestinationRates {
  readonly #options: DestinationRatesOptions
  readonly #buckets = new Map<string, TokenBucket>()

  constructor(options: DestinationRatesOptions) {
    this.#options = options
  }

  /**
   * The number of Identifies per second that this worker may send to one destination. It is this worker's
   * fraction of the limit for all workers.
   */
  get perSecond(): number {
    const { perSecond, partitions, ownUnits } = this.#options
    return perSecond * (Math.max(1, ownUnits()) / partitions)
  }

  /**
   * Returns the milliseconds until an Identify may be sent to the destination, or 0 if one may be sent now.
   */
  waitMs(destinationId: string, nowMs: number): number {
    return this.#bucketOf(destinationId).take(nowMs, 0)
  }

  /** Takes `count` tokens, for Identifies that are sent to the destination. */
  take(destinationId: string, count: number): void {
    this.#bucketOf(destinationId).take(performance.now(), count)
  }

  /** Forgets all destinations that aren't in `destinationIds`. */
  keepOnly(destinationIds: ReadonlySet<string>): void {
    for (const id of this.#buckets.keys()) if (!destinationIds.has(id)) this.#buckets.delete(id)
  }

  #bucketOf(destinationId: string): TokenBucket {
    const rate = { perSecond: this.perSecond, burst: 1 }
    const nowMs = performance.now()
    let bucket = this.#buckets.get(destinationId)
    if (bucket === undefined) {
      bucket = new TokenBucket(rate, nowMs)
      this.#buckets.set(destinationId, bucket)
    }
    bucket.setRate(rate, nowMs)
    return bucket
  }
}
