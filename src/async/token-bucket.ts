/** A rate with a burst: `perSecond` tokens are added each second, and at most `burst` are kept. */
export type Rate = { readonly perSecond: number; readonly burst: number }

/**
 * A token bucket that is full at the start. All times are milliseconds of one monotonic clock, given by the
 * caller.
 */
export class TokenBucket {
  #rate: Rate
  #tokens: number
  #atMs: number

  constructor(rate: Rate, nowMs: number) {
    this.#rate = rate
    this.#tokens = rate.burst
    this.#atMs = nowMs
  }

  /**
   * Changes the rate. Call this method when the partitions of this worker have changed, because the worker
   * then has another fraction of the rate.
   */
  setRate(rate: Rate, nowMs: number): void {
    this.#refill(nowMs)
    this.#rate = rate
    this.#tokens = Math.min(this.#tokens, rate.burst)
  }

  /**
   * Takes `count` tokens and returns 0 if there is at least one token. Otherwise takes none, and returns the
   * milliseconds until a call would succeed. One token is enough for any count: the missing tokens become a
   * debt, which later tokens repay. If all tokens had to be there, a caller whose count is above the burst
   * would wait forever.
   */
  take(nowMs: number, count = 1): number {
    this.#refill(nowMs)
    if (this.#tokens >= 1) {
      this.#tokens -= count
      return 0
    }
    return Math.ceil(((1 - this.#tokens) / this.#rate.perSecond) * 1000)
  }

  /** Puts back tokens that were taken and not used. */
  giveBack(count: number): void {
    this.#tokens = Math.min(this.#rate.burst, this.#tokens + count)
  }

  get perSecond(): number {
    return this.#rate.perSecond
  }

  /** Returns true if the bucket is full. A full bucket needn't be kept, because a new bucket is full too. */
  isFull(nowMs: number): boolean {
    this.#refill(nowMs)
    return this.#tokens >= this.#rate.burst
  }

  #refill(nowMs: number): void {
    const gained = (Math.max(0, nowMs - this.#atMs) / 1000) * this.#rate.perSecond
    this.#tokens = Math.min(this.#rate.burst, this.#tokens + gained)
    this.#atMs = nowMs
  }
}
