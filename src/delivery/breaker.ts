/**
 * A circuit breaker for one hook. Closed, it lets everything through and counts; when enough of the window
 * failed it opens, and the hook is left out without a socket. After a while one probe goes through, then
 * two, four, eight: a hook that comes back isn't met with all that waited for it.
 */

export type BreakerOptions = {
  /** The share of failures in the window, 0 to 1, at which it opens. */
  failureShare: number
  /** Fewer results than this in the window say nothing. */
  minResults: number
  /** How far back results count, in milliseconds. */
  windowMs: number
  /** How long it stays open at first; doubled with each probe that fails. */
  openMs: number
  maxOpenMs: number
}

export type BreakerState = 'closed' | 'open' | 'half-open'

/** Half-open lets 1, 2, 4, … requests be in flight; once it would be more than this, it closes. */
const maxProbes = 8

type Tally = { results: number; failures: number }

/** Times are milliseconds of one monotonic clock, given by the caller. */
export class Breaker {
  readonly #options: BreakerOptions
  #state: BreakerState = 'closed'
  /** Two halves of the window: the older one drops out as a whole. */
  #older: Tally = { results: 0, failures: 0 }
  #newer: Tally = { results: 0, failures: 0 }
  #newerSinceMs = 0
  #openUntilMs = 0
  #openMs: number
  /** The hook asked to be left alone until then, whatever its state. */
  #heldUntilMs = 0
  #probeLimit = 1
  #probesInFlight = 0
  /** Tells results of requests that were begun in an earlier state from those that this state waits for. */
  #era = 0

  constructor(options: BreakerOptions) {
    this.#options = options
    this.#openMs = options.openMs
  }

  state(nowMs: number): BreakerState {
    if (this.#state === 'open' && nowMs >= this.#openUntilMs) this.#become('half-open')
    return this.#state
  }

  /** Whether a request may be begun now. */
  allows(nowMs: number): boolean {
    if (nowMs < this.#heldUntilMs) return false
    const state = this.state(nowMs)
    if (state === 'half-open') return this.#probesInFlight < this.#probeLimit
    return state === 'closed'
  }

  /** The longest that a hook is left alone, whatever it asks for: one message's `Retry-After` must not end all others. */
  get maxHoldMs(): number {
    return this.#options.maxOpenMs
  }

  /** Until when the hook asked to be left alone; 0 when it never did. */
  get heldUntilMs(): number {
    return this.#heldUntilMs
  }

  /** A request is begun. Give what it returns to `ended`. */
  begun(nowMs: number): number {
    if (this.state(nowMs) === 'half-open') this.#probesInFlight++
    return this.#era
  }

  ended(era: number, hasFailed: boolean, nowMs: number): void {
    // Begun before the state changed: the results that changed it have said as much.
    if (era !== this.#era) return
    if (this.#state === 'half-open') this.#probeEnded(hasFailed, nowMs)
    else if (this.#state === 'closed') this.#count(hasFailed, nowMs)
  }

  /** A request that was begun was never sent, through no fault of the hook's: it says nothing. */
  withdrawn(era: number): void {
    if (era === this.#era && this.#state === 'half-open') this.#probesInFlight--
  }

  /** The hook asked for a pause (`Retry-After`). */
  hold(untilMs: number): void {
    this.#heldUntilMs = Math.max(this.#heldUntilMs, untilMs)
  }

  #count(hasFailed: boolean, nowMs: number): void {
    const { windowMs, minResults, failureShare } = this.#options
    if (nowMs - this.#newerSinceMs >= windowMs / 2) {
      const isStale = nowMs - this.#newerSinceMs >= windowMs
      this.#older = isStale ? { results: 0, failures: 0 } : this.#newer
      this.#newer = { results: 0, failures: 0 }
      this.#newerSinceMs = nowMs
    }
    this.#newer.results++
    if (!hasFailed) return
    this.#newer.failures++
    const results = this.#older.results + this.#newer.results
    const failures = this.#older.failures + this.#newer.failures
    if (results >= minResults && failures / results >= failureShare) this.#open(nowMs)
  }

  #probeEnded(hasFailed: boolean, nowMs: number): void {
    this.#probesInFlight--
    if (hasFailed) {
      this.#openMs = Math.min(this.#openMs * 2, this.#options.maxOpenMs)
      this.#open(nowMs)
    } else if (this.#probeLimit * 2 > maxProbes) {
      this.#openMs = this.#options.openMs
      this.#become('closed')
    } else {
      this.#probeLimit *= 2
    }
  }

  #open(nowMs: number): void {
    this.#become('open')
    this.#openUntilMs = nowMs + this.#openMs
  }

  #become(state: BreakerState): void {
    this.#state = state
    this.#era++
    this.#probeLimit = 1
    this.#probesInFlight = 0
    this.#older = { results: 0, failures: 0 }
    this.#newer = { results: 0, failures: 0 }
  }
}
