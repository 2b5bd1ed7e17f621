import { type Rate, TokenBucket } from '../../async/token-bucket.ts'

/** How often one address, and all together, may send a wrong token, code or link. */
const ofAddress: Rate = { perSecond: 0.5, burst: 30 }
const ofAll: Rate = { perSecond: 20, burst: 200 }
/** The most addresses that are remembered. The one that was wrong last is the last. */
const mostAddresses = 10_000

/**
 * Limits how often somebody may guess. The secrets have 256 random bits, so this only keeps guesses from
 * costing the server, and from filling its log.
 */
export class WrongSecrets {
  readonly #all: TokenBucket
  readonly #addresses = new Map<string, TokenBucket>()
  readonly #now: () => number

  constructor(now = () => performance.now()) {
    this.#now = now
    this.#all = new TokenBucket(ofAll, now())
  }

  /** Returns how many milliseconds an address has to wait until it may try again. 0: not at all. */
  waitMs(address: string): number {
    const nowMs = this.#now()
    const buckets = [this.#all, this.#addresses.get(address)].filter((one) => one !== undefined)
    return Math.max(
      ...buckets.map((bucket) => {
        const waitMs = bucket.take(nowMs)
        if (waitMs === 0) bucket.giveBack(1)
        return waitMs
      }),
    )
  }

  /** Notes that an address has sent a wrong secret. */
  note(address: string): void {
    const nowMs = this.#now()
    this.#all.take(nowMs)
    const bucket = this.#addresses.get(address) ?? new TokenBucket(ofAddress, nowMs)
    bucket.take(nowMs)
    this.#addresses.delete(address)
    this.#addresses.set(address, bucket)
    for (const [oldest] of this.#addresses) {
      if (this.#addresses.size <= mostAddresses) return
      this.#addresses.delete(oldest)
    }
  }
}
