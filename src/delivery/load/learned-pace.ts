/** After a 429, the pace is this share of the answers a second. */
const slowerTimes = 0.8
/** The pace never falls below one request in five seconds. */
const leastPerSecond = 0.2
/** By this share of itself, the pace grows in each second without a 429. */
const growthPerSecond = 0.05
/** Without a 429 for this time, in milliseconds, there is no pace any more. */
const keptMs = 60_000
/** The time in which answers are counted, in milliseconds. */
const windowMs = 1_000

/**
 * The rate of requests to a hook that answers 429 and doesn't say how long to wait. After a 429, the pace is
 * somewhat below the rate at which the hook has answered. Then it grows until the next 429. All times are
 * milliseconds of one monotonic clock.
 */
export class LearnedPace {
  /** The pace at `#throttledMs`, in requests a second. 0: there is no pace. */
  #perSecond = 0
  #throttledMs = Number.NEGATIVE_INFINITY
  #answers = 0
  #windowStartMs = Number.NEGATIVE_INFINITY
  #lastPerSecond = 0

  /** False if there certainly is no pace. */
  get isSet(): boolean {
    return this.#perSecond !== 0
  }

  /** The pace in requests a second. `undefined`: there is none. */
  at(nowMs: number): number | undefined {
    if (this.#perSecond === 0) return undefined
    const sinceMs = nowMs - this.#throttledMs
    if (sinceMs < keptMs) return this.#perSecond * (1 + (growthPerSecond * sinceMs) / 1_000)
    this.#perSecond = 0
    return undefined
  }

  answered(nowMs: number): void {
    this.#look(nowMs)
    this.#answers++
  }

  /** Takes a 429 for a request that was started at `begunMs`. */
  throttled(begunMs: number, nowMs: number): void {
    // Requests that were started before the pace was lowered say nothing about the new pace.
    if (begunMs <= this.#throttledMs) return
    this.#look(nowMs)
    const present = this.#answers / (Math.max(windowMs, nowMs - this.#windowStartMs) / 1_000)
    const measured = Math.max(present, this.#lastPerSecond)
    const former = this.at(nowMs)
    // If there is no answer to measure, a pause must be enough.
    if (former === undefined && measured === 0) return
    const pace = measured === 0 ? former : Math.min(former ?? measured, measured)
    this.#perSecond = Math.max(leastPerSecond, slowerTimes * (pace ?? 0))
    this.#throttledMs = nowMs
  }

  #look(nowMs: number): void {
    const sinceMs = nowMs - this.#windowStartMs
    if (sinceMs < windowMs) return
    this.#lastPerSecond = sinceMs < 2 * windowMs ? (this.#answers / sinceMs) * 1_000 : 0
    this.#answers = 0
    this.#windowStartMs = nowMs
  }
}
