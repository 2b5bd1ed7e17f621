// A circuit breaker for one hook. It slows a failing hook and never stops it. A closed breaker lets every
// request through and counts results. It opens when a time window has enough results, and the share of
// failures among them reaches a limit. An open breaker decides how often the hook may be tried:
//
// - The first and the last try of a message need no credit. But a probe may take the place of the last try of
//   a later message.
// - Each other try costs a credit. Each success earns credits (additive increase). Fifty results in a row
//   without a success halve the saved credits (multiplicative decrease). A hook that fails nine of ten
//   requests earns credits for all its tries. A hook that is down gets no such tries, except a probe now and
//   then: a try without a credit.
// - A hook that still accepts some requests has a limit on requests in flight. Each success raises the limit
//   by one. Results are judged in groups (runs). A run halves the limit if the limit was reached and at least
//   half of the requests timed out. So an overloaded server gets fewer requests at once. A hook that has
//   accepted nothing for 30 s or in 50 results has no limit. It does no work that a limit could protect, and
//   its messages must get their first and last tries.
//
// The breaker closes when the share of failures in a run of results is below the share that opens it.

/** The settings of a breaker. */
export type BreakerOptions = {
  /** The share of failures in the time window, 0 to 1, at which the breaker opens. */
  failureShare: number
  /**
   * The least number of results in the time window at which the breaker can open. While the breaker is open,
   * this number of results is judged together (a run).
   */
  minResults: number
  /** Length of the time window, in milliseconds. Older results don't count. */
  windowMs: number
  /**
   * How long an open breaker waits after the last request before it allows a probe. Each request that fails
   * doubles this time, up to `maxOpenMs`. A success resets this time to `openMs`.
   */
  openMs: number
  maxOpenMs: number
}

export type BreakerState = 'closed' | 'open'

/**
 * The result of one request to a hook. `timeout`: no answer came in time, for example because the server is
 * overloaded.
 */
export type HookAnswer = 'success' | 'failure' | 'timeout'

/**
 * Position of a try among a message's tries. Two tries are guaranteed. `only`: the first try is also the
 * last, because there is no time for a later try. `last`: the second try, if there is no time for a later
 * one. `between`: the second try, if there is time for a later one. `again`: a try after at least two tries.
 */
export type TryClass = 'only' | 'first' | 'last' | 'between' | 'again'

/**
 * Number of credits that one success earns. A credit pays for one `between` or `again` try. To be tried as
 * often as a healthy hook, a hook that accepts one of ten requests needs nine credits for each success. With
 * 50 credits for each success, even a hook that accepts only one of fifty requests gets nearly all of its
 * tries.
 */
const creditsPerSuccess = 50
/**
 * Upper limit of saved credits. Without this limit, a hook that has recovered would be flooded with all
 * messages that waited for it.
 */
const maxCredits = 1_000
/**
 * Upper limit of `#borrowed`, the number of last tries that will not be made because probes took their
 * places.
 */
const maxBorrowed = 100
/**
 * A hook counts as dead after `deadResults` results without a success, or after `deadMs` milliseconds without
 * a success.
 */
const deadResults = 50
const deadMs = 30_000

type Tally = { results: number; failures: number }

/**
 * Results that are judged together. `isFull`: the limit on requests in flight was reached while these results
 * came in.
 */
type Run = { results: number; successes: number; timeouts: number; isFull: boolean }

function newRun(): Run {
  return { results: 0, successes: 0, timeouts: 0, isFull: false }
}

/** The breaker of one hook. All times are milliseconds of one monotonic clock, given by the caller. */
export class Breaker {
  readonly #options: BreakerOptions
  #state: BreakerState = 'closed'
  /**
   * The results in the two halves of the time window. When the time of the newer half is over, the older half
   * is dropped as a whole.
   */
  #older: Tally = { results: 0, failures: 0 }
  #newer: Tally = { results: 0, failures: 0 }
  #newerSinceMs = 0
  /** Requests under way. */
  #inFlight = 0
  /** The end of the pause that the hook asked for. The pause counts in every state of the breaker. */
  #heldUntilMs = 0
  /**
   * Number of changes of state so far. A result doesn't count if the state has changed since its request
   * started.
   */
  #era = 0

  // The following fields are used only while the breaker is open.
  #run = newRun()
  #credits = 0
  /**
   * Number of last tries that will not be made, because probes took their places. A probe takes the place of
   * a last try if the probe's message has already had its two guaranteed tries.
   */
  #borrowed = 0
  /** The limit on requests in flight while the hook still accepts some requests. */
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

  /** Number of requests in flight to the hook, from the lanes and from the bulkhead. */
  get inFlight(): number {
    return this.#inFlight
  }

  get state(): BreakerState {
    return this.#state
  }

  /**
   * Returns how long the breaker has been open. Returns 0 if it is closed, or if no request was sent in the
   * last `quietMs`.
   */
  openForMs(nowMs: number, quietMs: number): number {
    return this.#state === 'open' && nowMs - this.#lastBegunMs < quietMs ? nowMs - this.#openedMs : 0
  }

  /**
   * The longest pause that a hook gets, even if it asks for a longer one. One message's `Retry-After` must
   * not make all other messages fail.
   */
  get maxHoldMs(): number {
    return this.#options.maxOpenMs
  }

  /** The end of the pause that the hook asked for; 0 if it has never asked for one. */
  get heldUntilMs(): number {
    return this.#heldUntilMs
  }

  /**
   * Returns true if every request may be sent to the hook: the breaker is closed, and no pause is under way.
   */
  isWell(nowMs: number): boolean {
    return this.#state === 'closed' && nowMs >= this.#heldUntilMs
  }

  /**
   * Decides about a try of a hook that isn't healthy. `go`: the try may start. `wait`: the try may start
   * soon. `skip`: the try isn't made now, because nothing suggests that it could start soon, or because a
   * probe took its place.
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

  /**
   * Counts a request that starts. When the request ends, pass the returned number to `ended`. If the request
   * was never sent, call `withdrawn` instead.
   */
  begun(nowMs: number, tryClass: TryClass): number {
    this.#inFlight++
    if (this.#inFlight >= this.#limit) this.#run.isFull = true
    if (this.#state === 'open') {
      if (tryClass === 'between' || tryClass === 'again') this.#spend(tryClass)
      this.#lastBegunMs = nowMs
    }
    return this.#era
  }

  /** Remembers that a last try isn't made, because `advise` returned `skip` for this try. */
  forgone(): void {
    if (this.#borrowed > 0) this.#borrowed--
  }

  #spend(tryClass: 'between' | 'again'): void {
    if (this.#credits > 0) this.#credits--
    else if (tryClass === 'again') this.#borrowed = Math.min(maxBorrowed, this.#borrowed + 1)
  }

  ended(era: number, answer: HookAnswer, nowMs: number): void {
    this.#inFlight--
    // The request started before the state changed. Its result adds nothing to the results that changed the
    // state.
    if (era !== this.#era) return
    if (this.#state === 'closed') this.#count(answer !== 'success', nowMs)
    else this.#follow(answer, nowMs)
  }

  /**
   * Remembers that a started request was never sent, through no fault of the hook. Such a request doesn't
   * count as a result, and takes the place of no last try. `era` is the number that `begun` returned.
   */
  withdrawn(era: number, tryClass: TryClass): void {
    this.#inFlight--
    if (era === this.#era && tryClass === 'again' && this.#borrowed > 0) this.#borrowed--
  }

  /** Remembers that the hook asked for a pause (`Retry-After`). */
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

  /** Opens the breaker. `successes`: the number of successes among the results that open it. */
  #open(successes: number, nowMs: number): void {
    this.#become('open')
    this.#openedMs = nowMs
    this.#run = newRun()
    this.#credits = successes * creditsPerSuccess
    this.#borrowed = 0
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
 * The limit on requests in flight to a hook at the time when its breaker opens. Later, the limit never falls
 * below this number. The default limit of a lane is the same number.
 */
const leastLimit = 64
