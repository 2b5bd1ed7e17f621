/** Counts of requests in a span of time. `sick`: those that failing hooks got, or would have got. */
type Span = { all: number; sick: number }

/** The length of a span, in milliseconds. The load is that of the present and the previous span. */
const spanMs = 2_000
/** After a span with too much load, the load counts as high for this time, in milliseconds. */
const restMs = 10_000

export type SickLoadOptions = {
  /** The load is low while failing hooks get at most this share of all requests, 0 to 1. */
  readonly share: number
  /** The load is also low while they get at most this number of requests a second. */
  readonly perSecond: number
}

/**
 * What one process may always afford: a tenth of its requests. A process makes thousands of requests a
 * second, so a few hundred are a small part of what it can make, even while there is little else to do.
 */
export const usualSickLoad: SickLoadOptions = { share: 0.1, perSecond: 300 }

/**
 * Measures how many requests of this process go to failing hooks. While they are few, each message gets every
 * try of the ladder.
 *
 * Tries that the breakers refuse count too. Otherwise the load would be low because tries are refused, and
 * tries would be allowed and refused in turn. All times are milliseconds of one monotonic clock, given by the
 * caller.
 */
export class SickLoad {
  readonly #options: SickLoadOptions
  #before: Span = { all: 0, sick: 0 }
  #now: Span = { all: 0, sick: 0 }
  #sinceMs = 0
  #highUntilMs = -Infinity

  constructor(options: SickLoadOptions) {
    this.#options = options
  }

  /** Counts a request to a hook that works. */
  sound(nowMs: number): void {
    this.#turn(nowMs)
    this.#now.all++
  }

  /** Counts requests to failing hooks, which are made or refused. */
  sick(nowMs: number, count = 1): void {
    this.#turn(nowMs)
    this.#now.all += count
    this.#now.sick += count
    if (this.#isOver()) this.#highUntilMs = nowMs + restMs
  }

  /** Returns true while failing hooks get few requests. */
  isLow(nowMs: number): boolean {
    return nowMs >= this.#highUntilMs
  }

  #isOver(): boolean {
    const { share, perSecond } = this.#options
    const sick = this.#before.sick + this.#now.sick
    if (sick <= (perSecond * 2 * spanMs) / 1_000) return false
    return sick > share * (this.#before.all + this.#now.all)
  }

  #turn(nowMs: number): void {
    const spans = Math.floor((nowMs - this.#sinceMs) / spanMs)
    if (spans <= 0) return
    this.#before = spans === 1 ? this.#now : { all: 0, sick: 0 }
    this.#now = { all: 0, sick: 0 }
    this.#sinceMs += spans * spanMs
  }
}
