/**
 * A circuit breaker for one hook, which slows a hook and never stops it. Closed, it lets everything through
 * and counts; when enough of the window failed it opens, and from then on says how fast the hook may be
 * tried:
 *
 * - The first and the last try of a message need no leave, but a last one gives way to a probe that was made
 *   in its place.
 * - A try in between costs a credit, and each success earns some (additive increase); many results without
 *   any success halve what is left (multiplicative decrease). A hook that fails nine of ten requests earns
 *   all its tries, one that is down gets none but a probe now and then.
 * - A hook that still answers has a limit on requests in flight: each success raises it by one, a run that
 *   mostly timed out halves it, so that an overloaded server finds its pace. One that has not taken anything
 *   for long is not limited: nothing is there to be spared, and its messages are owed their tries.
 *
 * It closes when a run of results failed less often than what opens it.
 */

export type BreakerOptions = {
  /** The share of failures in the window, 0 to 1, at which it opens. */
  failureShare: number
  /** Fewer results than this in the window say nothing; while it is open, so many make a run. */
  minResults: number
  /** How far back results count, in milliseconds. */
  windowMs: number
  /** How long a hook that was sent nothing waits for its first probe; doubled with each probe that fails. */
  openMs: number
  maxOpenMs: number
}

export type BreakerState = 'closed' | 'open'

/** `timeout`: no answer in time. A server that is asked for too much shows it so. */
export type HookAnswer = 'success' | 'failure' | 'timeout'

/**
 * Which of a message's tries it is. `only`: it was never tried, and there is no later time. `between`: it has
 * had one, and the last is still to come. `again`: it has had the two that it is owed.
 */
export type TryClass = 'only' | 'first' | 'last' | 'between' | 'again'

/**
 * What a success earns: tries in between. A hook that takes one of ten requests needs nine for each success,
 * to be tried as if it were well; one that takes one of fifty gets nearly all of its tries.
 */
const creditsPerSuccess = 50
/** What may be saved up: nobody is met with all that waited for it the moment it is back. */
const maxCredits = 1_000
/** Last tries that one after another may be left out, for probes. */
const maxBorrowed = 100
/** So many results without a success, or this long without one: it takes nothing at all. */
const deadResults = 50
const deadMs = 30_000

type Tally = { results: number; failures: number }

/** Results that are looked at together. `isFull`: the limit on requests in flight was reached meanwhile. */
type Run = { results: number; successes: number; timeouts: number; isFull: boolean }

function newRun(): Run {
  return { results: 0, successes: 0, timeouts: 0, isFull: false }
}

/** Times are milliseconds of one monotonic clock, given by the caller. */
export class Breaker {
  readonly #options: BreakerOptions
  #state: BreakerState = 'closed'
  /** Two halves of the window: the older one drops out as a whole. */
  #older: Tally = { results: 0, failures: 0 }
  #newer: Tally = { results: 0, failures: 0 }
  #newerSinceMs = 0
  /** Requests under way. */
  #inFlight = 0
  /** The hook asked to be left alone until then, whatever its state. */
  #heldUntilMs = 0
  /** Tells results of requests that were begun in an earlier state from those that this state waits for. */
  #era = 0

  // While it is open.
  #run = newRun()
  #credits = 0
  /** Probes by messages that were owed none: each takes the place of a last try. */
  #borrowed = 0
  /** Most requests in flight, while it takes something now and then. */
  #limit = 0
  #sinceSuccess = 0
  #lastSuccessMs = 0
  #lastBegunMs = 0
  #openedMs = 0
  #probeMs: number

  constructor(options: BreakerOptions) {
    this.#options = options
    this.#probeMs = options.openMs
  }

  /** Requests under way, by whatever way. */
  get inFlight(): number {
    return this.#inFlight
  }

  get state(): BreakerState {
    return this.#state
  }

  /** How long it has been open; 0 where it is closed, or nothing was sent for `quietMs`. */
  openForMs(nowMs: number, quietMs: number): number {
    return this.#state === 'open' && nowMs - this.#lastBegunMs < quietMs ? nowMs - this.#openedMs : 0
  }

  /**
   * The longest that a hook is left alone, whatever it asks for: one message's `Retry-After` must not end all
   * others.
   */
  get maxHoldMs(): number {
    return this.#options.maxOpenMs
  }

  /** Until when the hook asked to be left alone; 0 when it never did. */
  get heldUntilMs(): number {
    return this.#heldUntilMs
  }

  /** It is to be sent requests as any other. */
  isWell(nowMs: number): boolean {
    return this.#state === 'closed' && nowMs >= this.#heldUntilMs
  }

  /**
   * What is to be done with a try of a hook that isn't well: `go`, `wait` (it may go soon), or `skip`
   * (nothing says that it could).
   */
  advise(tryClass: TryClass, nowMs: number): 'go' | 'wait' | 'skip' {
    const isForced = tryClass === 'last' || tryClass === 'only'
    if (nowMs < this.#heldUntilMs && !isForced) return 'wait'
    if (this.#state === 'closed') return 'go'
    const isDead = this.#isDead(nowMs)
    const hasRoom = this.#inFlight < this.#limit
    if (tryClass === 'last' && isDead && this.#borrowed > 0 && this.#credits === 0) return 'skip'
    if (isForced || tryClass === 'first') return isDead || hasRoom ? 'go' : 'wait'
    if (this.#credits > 0) return hasRoom ? 'go' : 'wait'
    if (nowMs - this.#lastBegunMs >= this.#probeMs) return 'go'
    return this.#inFlight > 0 && !isDead ? 'wait' : 'skip'
  }

  /** A request is begun. Give what it returns to `ended`, or tell `withdrawn`. */
  begun(nowMs: number, tryClass: TryClass): number {
    this.#inFlight++
    if (this.#inFlight >= this.#limit) this.#run.isFull = true
    if (this.#state === 'open') {
      if (tryClass === 'between' || tryClass === 'again') this.#spend(tryClass)
      this.#lastBegunMs = nowMs
    }
    return this.#era
  }

  /** A last try isn't made, since it was told to `skip`. */
  forgone(): void {
    if (this.#borrowed > 0) this.#borrowed--
  }

  #spend(tryClass: 'between' | 'again'): void {
    if (this.#credits > 0) this.#credits--
    else if (tryClass === 'again') this.#borrowed = Math.min(maxBorrowed, this.#borrowed + 1)
  }

  ended(era: number, answer: HookAnswer, nowMs: number): void {
    this.#inFlight--
    // Begun before the state changed: the results that changed it have said as much.
    if (era !== this.#era) return
    if (this.#state === 'closed') this.#count(answer !== 'success', nowMs)
    else this.#follow(answer, nowMs)
  }

  /** A request that was begun was never sent, through no fault of the hook's: it says nothing. */
  withdrawn(): void {
    this.#inFlight--
  }

  /** The hook asked for a pause (`Retry-After`). */
  hold(untilMs: number): void {
    this.#heldUntilMs = Math.max(this.#heldUntilMs, untilMs)
  }

  #isDead(nowMs: number): boolean {
    return this.#sinceSuccess >= deadResults || nowMs - this.#lastSuccessMs >= deadMs
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
    if (!hasFailed) {
      this.#lastSuccessMs = nowMs
      return
    }
    this.#newer.failures++
    const results = this.#older.results + this.#newer.results
    const failures = this.#older.failures + this.#newer.failures
    if (results >= minResults && failures / results >= failureShare) this.#open(results - failures, nowMs)
  }

  #follow(answer: HookAnswer, nowMs: number): void {
    const run = this.#run
    run.results++
    if (answer === 'timeout') run.timeouts++
    if (answer === 'success') {
      run.successes++
      this.#sinceSuccess = 0
      this.#lastSuccessMs = nowMs
      this.#credits = Math.min(maxCredits, this.#credits + creditsPerSuccess)
      this.#limit++
      this.#probeMs = this.#options.openMs
    } else {
      this.#sinceSuccess++
      if (this.#sinceSuccess % deadResults === 0) this.#credits = Math.floor(this.#credits / 2)
      this.#probeMs = Math.min(this.#probeMs * 2, this.#options.maxOpenMs)
    }
    if (run.results >= this.#options.minResults) this.#endRun()
  }

  #endRun(): void {
    const { results, successes, timeouts, isFull } = this.#run
    this.#run = newRun()
    if (isFull && timeouts * 2 >= results) this.#limit = Math.max(leastLimit, Math.floor(this.#limit / 2))
    if ((results - successes) / results < this.#options.failureShare) this.#become('closed')
  }

  /** `successes`: of the window that opens it. */
  #open(successes: number, nowMs: number): void {
    this.#become('open')
    this.#openedMs = nowMs
    this.#run = newRun()
    this.#credits = successes * creditsPerSuccess
    this.#limit = leastLimit
    this.#sinceSuccess = successes === 0 ? deadResults : 0
    this.#lastBegunMs = nowMs
    this.#probeMs = this.#options.openMs
  }

  #become(state: BreakerState): void {
    this.#state = state
    this.#era++
    this.#older = { results: 0, failures: 0 }
    this.#newer = { results: 0, failures: 0 }
  }
}

/**
 * Requests in flight to a hook whose breaker has just opened, and the least that it is ever left: what a lane
 * has by default.
 */
const leastLimit = 64
