import { TokenBucket } from '../pacing/token-bucket.ts'

export type DestinationRatesOptions = {
  /** Identifies a second for one destination, by all workers together. */
  readonly perSecond: number
  /** How many units there are. */
  readonly partitions: number
  /** How many of them are ours. */
  readonly ownUnits: () => number
}

/** How fast each destination is told. Two spaces of one share its rate. */
export class DestinationRates {
  readonly #options: DestinationRatesOptions
  readonly #buckets = new Map<string, TokenBucket>()

  constructor(options: DestinationRatesOptions) {
    this.#options = options
  }

  /** Identifies a second for one destination, by this worker: of all workers together it is what is set. */
  get perSecond(): number {
    const { perSecond, partitions, ownUnits } = this.#options
    return perSecond * (Math.max(1, ownUnits()) / partitions)
  }

  /** Gives 0 where the destination may be told something, or in how many milliseconds. */
  waitMs(destinationId: string, nowMs: number): number {
    return this.#bucketOf(destinationId).take(nowMs, 0)
  }

  /** The destination is told so much. */
  take(destinationId: string, count: number): void {
    this.#bucketOf(destinationId).take(performance.now(), count)
  }

  /** Forgets the others. */
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
