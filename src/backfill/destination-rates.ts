import { TokenBucket } from '../pacing/token-bucket.ts'

export type DestinationRatesOptions = {
  /** The limit on Identifies a second for one destination, by all workers together. */
  readonly perSecond: number
  /** The number of units. */
  readonly partitions: number
  /** Returns the number of units that this worker owns. */
  readonly ownUnits: () => number
}

/**
 * Limits the rate at which first syncs are sent to each destination. Two spaces of one destination share its
 * rate.
 */
export class DestinationRates {
  readonly #options: DestinationRatesOptions
  readonly #buckets = new Map<string, TokenBucket>()

  constructor(options: DestinationRatesOptions) {
    this.#options = options
  }

  /**
   * The Identifies a second that this worker may send to one destination: its share of the limit for all
   * workers.
   */
  get perSecond(): number {
    const { perSecond, partitions, ownUnits } = this.#options
    return perSecond * (Math.max(1, ownUnits()) / partitions)
  }

  /** Returns the milliseconds until something may be sent to the destination; 0 if that is allowed now. */
  waitMs(destinationId: string, nowMs: number): number {
    return this.#bucketOf(destinationId).take(nowMs, 0)
  }

  /** Notes that the destination is sent `count` Identifies. */
  take(destinationId: string, count: number): void {
    this.#bucketOf(destinationId).take(performance.now(), count)
  }

  /** Forgets all destinations except these. */
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
