/** The share of overloaded requests that is tolerated at any load. */
const leastTolerated = 0.2
const mostTolerated = 0.99
/** The number of overloaded requests, beyond those that are tolerated, at which a limit is too high. */
const mostStrikes = 6
const leastStrikes = 2
/** A limit of so many requests has one strike more than a limit of 1. */
const limitOfAStrike = 8
/**
 * This number of results at the lowest limit shows whether failures depend on load. They don't if more of
 * them fail than is tolerated, and if a request in flight brings less than twice the answers that it brought
 * before. Requests that start in the first seconds don't count, because an overloaded server first works off
 * what it has got. With so many results, a server that fails nine of ten is rarely taken for a dead one.
 */
const tellingResults = 20
const knownResults = 5
const relievedTimes = 2
const helpedResults = 3
const reliefMs = 5_000
/**
 * It was wrong to tolerate failures if this number of results shows that a request in flight brings less than
 * an eighth of the answers that it brought at the lowest limit.
 */
const revisedResults = 80
const revisedTimes = 8
/** If it was wrong to tolerate failures, none are tolerated for this time, in milliseconds. */
const intolerantMs = 60_000

/** A result of a request that was started after the limit was last lowered. */
export type Result = {
  readonly isOverloaded: boolean
  /** How long the request was in flight, in milliseconds. */
  readonly ms: number
  /** The present limit of this worker. */
  readonly cap: number
  /** True if the limit is as low as it gets. */
  readonly isLowest: boolean
}

/**
 * Decides whether requests fail because there are too many at once. If as many fail at the lowest limit,
 * their failures don't depend on load, and are tolerated from then on. All times are milliseconds of one
 * monotonic clock.
 */
export class Failures {
  #tolerated = leastTolerated
  /** The overloaded requests since the last halving, beyond those that are tolerated. */
  #strikes = 0
  /** Results while the limit has not been lowered, and those of before it was at its lowest. */
  #tally = new Tally()
  #before: Tally | undefined
  /** Results at the lowest limit, from the time at which they count. */
  #low = new Tally()
  #relievedMs = Number.POSITIVE_INFINITY
  /** What a request in flight brought at the lowest limit when failures were found not to depend on load. */
  #lowPerMs = 0
  #intolerantUntilMs = 0
  #answersInRow = 0

  /** True if failures were found not to depend on load. */
  get areTolerated(): boolean {
    return this.#tolerated > leastTolerated
  }

  /** Returns `too many` if the limit must be halved, and `not from load` if it may be what it was before. */
  count(result: Result, nowMs: number): 'too many' | 'not from load' | undefined {
    const { isOverloaded, cap, isLowest, ms } = result
    this.#answersInRow = isOverloaded ? 0 : this.#answersInRow + 1
    if (this.#before === undefined) this.#countAtLimit(result, nowMs)
    else if (!isLowest) this.#before.add(isOverloaded, ms)
    else if (nowMs - ms > this.#relievedMs && this.#isNotFromLoad(this.#before, result, nowMs))
      return 'not from load'
    if (!isOverloaded) {
      this.#strikes = Math.max(0, this.#strikes - this.#tolerated / (1 - this.#tolerated))
      return undefined
    }
    this.#strikes++
    // The more failures are tolerated, the more of them come in a row by chance.
    const times = (1 - leastTolerated) / (1 - this.#tolerated)
    const most = times * Math.max(leastStrikes, Math.min(mostStrikes, cap / limitOfAStrike))
    return this.#strikes >= most ? 'too many' : undefined
  }

  /** Call this when earlier requests don't count any more. */
  forgive(): void {
    this.#strikes = 0
  }

  /** Call this when the limit was lowered. */
  lowered(isLowest: boolean, nowMs: number): void {
    if (this.#before === undefined) {
      this.#before = this.#tally
      this.#tally = new Tally()
      this.#low = new Tally()
      this.#relievedMs = Number.POSITIVE_INFINITY
    }
    if (isLowest) this.#relievedMs = Math.min(this.#relievedMs, nowMs + reliefMs)
  }

  /** Call this when the limit is what it was before it was lowered. */
  restored(): void {
    this.#before = undefined
  }

  /** Ends the tolerance if it isn't needed any more. */
  review(): void {
    if (this.#tally.results > tellingResults && this.#tally.share < this.#tolerated / 3)
      this.#tolerated = leastTolerated
  }

  /** Ends the tolerance if it was wrong: the failures do depend on load. */
  #countAtLimit({ isOverloaded, ms }: Result, nowMs: number): void {
    const tally = this.#tally
    tally.add(isOverloaded, ms)
    if (!this.areTolerated || tally.results < revisedResults) return
    if (revisedTimes * tally.answersPerMs > this.#lowPerMs) return
    this.#tolerated = leastTolerated
    this.#intolerantUntilMs = nowMs + intolerantMs
  }

  #isNotFromLoad(before: Tally, { isOverloaded, ms }: Result, nowMs: number): boolean {
    const low = this.#low
    low.add(isOverloaded, ms)
    if (low.results < tellingResults) return false
    this.#low = new Tally()
    const { share, answersPerMs } = low
    // If the last requests were answered, the lowest limit has helped.
    if (this.#answersInRow >= helpedResults) return false
    if (nowMs < this.#intolerantUntilMs || share <= this.#tolerated || share === 1) return false
    if (before.results < knownResults || answersPerMs > relievedTimes * before.answersPerMs) return false
    this.#lowPerMs = answersPerMs
    this.#tolerated = Math.min(mostTolerated, 1.3 * share + 0.1)
    this.#strikes = 0
    this.#before = undefined
    return true
  }
}

/** Older results count half when there are more than this number. */
const mostResults = 100

class Tally {
  results = 0
  #overloaded = 0
  /** How long the requests were in flight in all, in milliseconds. */
  #slotMs = 0

  get share(): number {
    return this.#overloaded / this.results
  }

  /** The answers for each millisecond that a request was in flight. */
  get answersPerMs(): number {
    return (this.results - this.#overloaded) / this.#slotMs
  }

  add(isOverloaded: boolean, ms: number): void {
    if (this.results > mostResults) {
      this.results /= 2
      this.#overloaded /= 2
      this.#slotMs /= 2
    }
    this.results++
    if (isOverloaded) this.#overloaded++
    this.#slotMs += ms
  }
}
