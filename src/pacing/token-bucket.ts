/** A rate with a burst: `perSecond` tokens flow in, at most `burst` are kept. */
export type Rate = { readonly perSecond: number; readonly burst: number }

/** Times are milliseconds of one monotonic clock, given by the caller. Starts full. */
export class TokenBucket {
  #rate: Rate
  #tokens: number
  #atMs: number

  constructor(rate: Rate, nowMs: number) {
    this.#rate = rate
    this.#tokens = rate.burst
    this.#atMs = nowMs
  }

  /** The rate may change at any time: a destination's share follows the partitions that this member owns. */
  setRate(rate: Rate, nowMs: number): void {
    this.#refill(nowMs)
    this.#rate = rate
    this.#tokens = Math.min(this.#tokens, rate.burst)
  }

  /**
   * Takes `count` tokens, and gives 0; or takes none, and gives how many milliseconds until it would. One
   * token is enough for any count, and the others are owed: a count above the burst would otherwise wait for
   * ever.
   */
  take(nowMs: number, count = 1): number {
    this.#refill(nowMs)
    if (this.#tokens >= 1) {
      this.#tokens -= count
      return 0
    }
    return Math.ceil(((1 - this.#tokens) / this.#rate.perSecond) * 1000)
  }

  /** What was taken for nothing. */
  giveBack(count: number): void {
    this.#tokens = Math.min(this.#rate.burst, this.#tokens + count)
  }

  /** Nothing would be forgotten by making a new one. */
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
