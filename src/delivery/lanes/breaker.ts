// A circuit breaker for one hook. It slows a failing hook and never stops it. A closed breaker lets every
// request through and counts results. The breaker opens if a time window has enough results, and if the share
// of failures among them reaches a limit. An open breaker decides how often the hook may be tried:
//
// - The first and the last try of a message need no credit.
// - Each other try costs a credit. Each success earns credits (additive increase). Fifty results in a row
//   without a success halve the saved credits (multiplicative decrease). A hook that fails nine of ten
//   requests earns credits for all its tries. A hook that is down earns no credits. Now and then, one of
//   these tries is made without a credit (a probe). A probe may take the place of the last try of another
//   message.
// - While failing hooks get few of all requests of this process (`SickLoad`), no try costs a credit.
// - A hook that still accepts some requests gets no more requests at once than it was learned to take
//   (`HookRoom`). If a hook has accepted nothing for 30 s or in 50 results, its first and last tries have no
//   such limit. Its server does no work that a limit could protect.
//
// Results are judged in groups (runs). The breaker closes when the share of failures in a run is below the
// share that opens it.

import type { SickLoad } from './sick-load.ts'

export type BreakerOptions = {
  /** The share of failures in the time window, 0 to 1, at which the breaker opens. */
  failureShare: number
  /**
   * The breaker opens only if the time window has at least this number of results. While the breaker is open,
   * it judges this number of results together (a run).
   */
  minResults: number
  /** Length of the time window, in milliseconds. Older results don't count. */
  windowMs: number
  /**
   * An open breaker allows a probe if no request was started for this time, in milliseconds. Each request
   * that fails doubles this time, up to `maxOpenMs`. A success resets it to `openMs`.
   */
  openMs: number
  maxOpenMs: number
}

export type BreakerState = 'closed' | 'open'

/** The result of one request to a hook. */
export type HookAnswer = 'success' | 'failure'

/** What was learned about the load that a hook takes. */
export type HookRoom = {
  /**
   * Returns true if a request may be started now. `state` is that of the breaker: while it is open, a hook
   * whose failures never came from load gets as many requests as the ceiling allows.
   */
  hasRoom(nowMs: number, state?: BreakerState): boolean
  /** Returns the time from which a request may start, as far as the rate of requests is limited. */
  readyAtMs(nowMs: number): number
}

/**
 * Position of a try among the tries of a message. Each message gets two tries, if there is time for two.
 *
 * - `only`: the first try, if there is no time for a second try.
 * - `first`: the first try, if there is time for a second try.
 * - `last`: the second try, if there is no time for a third try.
 * - `between`: the second try, if there is time for a third try.
 * - `again`: any try after the second.
 * - `probe`: a try of a failing hook before a hook of the same destination that works (`failover`). It only
 *   finds out whether the failing hook has recovered.
 */
export type TryClass = 'only' | 'first' | 'last' | 'between' | 'again' | 'probe'

/**
 * Number of credits that one success earns. A credit pays for one `between` or `again` try. A hook that
 * accepts one of ten requests needs nine credits for each success, to be tried as often as a healthy hook.
 * With 50 credits for each success, even a hook that accepts only one of fifty requests gets nearly all of
 * its tries.
 */
const creditsPerSuccess = 50
/**
 * Upper limit of saved credits. Without this limit, a hook that has recovered would be flooded with all
 * messages that waited for it.
 */
const maxCredits = 1_000
/** Upper limit of `#borrowed`. */
const maxBorrowed = 100
/**
 * A hook counts as dead if none of its last `deadResults` results was a success, or if it had no success in
 * the last `deadMs` milliseconds.
 */
const deadResults = 50
const deadMs = 30_000

type Tally = { results: number; failures: number }

/** Results that are judged together. */
type Run = { results: number; successes: number }

function newRun(): Run {
  return { results: 0, successes: 0 }
}

/** Tells how much load the requests to failing hooks are. See `SickLoad`. */
export type LoadOfSick = Pick<SickLoad, 'isLow' | 'sick' | 'sound'>

/** The breaker of one hook. All times are milliseconds of one monotonic clock, given by the caller. */
export class Breaker {
  readonly #options: BreakerOptions
  readonly #room: HookRoom
  readonly #load: LoadOfSick | undefined
  readonly #onOpen: (() => void) | undefined
  #state: BreakerState = 'closed'
  /**
   * The results of the time window, in two halves. When the newer half is complete, it replaces the older
   * half.
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
   * Number of last tries that will still be left out, because probes took their places. A probe of class
   * `again` takes the place of one last try. A probe of another class takes no place, because its message
   * has had at most one try.
   */
  #borrowed = 0
  #sinceSuccess = 0
  #lastSuccessMs = 0
  #lastBegunMs = 0
  #openedMs = 0
  #probeMs: number

  /**
   * Without `load`, each try but the first and the last costs a credit. `onOpen`: called when the breaker
   * opens, and at each request that starts while it is open.
   */
  constructor(options: BreakerOptions, room: HookRoom, load?: LoadOfSick, onOpen?: () => void) {
    this.#options = options
    this.#room = room
    this.#load = load
    this.#onOpen = onOpen
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
   * Returns for how many milliseconds the breaker has been open. Returns 0 if the breaker is closed, or if no
   * request was started in the last `quietMs`.
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

  /** The end of the last pause that the hook asked for. It is 0 if the hook has never asked for a pause. */
  get heldUntilMs(): number {
    return this.#heldUntilMs
  }

  /** Returns the time until which the hook gets no request: because it asked for a pause, or by its pace. */
  restsUntilMs(nowMs: number): number {
    return Math.max(this.#heldUntilMs, this.#room.readyAtMs(nowMs))
  }

  /** Returns true if the hook takes one more request now. */
  hasRoom(nowMs: number): boolean {
    return this.#room.hasRoom(nowMs)
  }

  /**
   * Returns true if every request may be sent to the hook: the breaker is closed, and no pause is under way.
   */
  isWell(nowMs: number): boolean {
    return this.#state === 'closed' && nowMs >= this.#heldUntilMs
  }

  /**
   * Decides whether a try may start at a hook that isn't healthy.
   *
   * - `go`: the try may start now.
   * - `wait`: the try may start soon. Ask again.
   * - `skip`: don't make this try. Either nothing suggests that it could start soon, or a probe has taken its
   *   place.
   */
  advise(tryClass: TryClass, nowMs: number): 'go' | 'wait' | 'skip' {
    const isForced = tryClass === 'last' || tryClass === 'only'
    if (nowMs < this.#heldUntilMs && !isForced) return 'wait'
    if (this.#state === 'closed') return 'go'
    const isDead = this.#isDead(nowMs)
    const hasRoom = this.#room.hasRoom(nowMs, 'open')
    if (tryClass !== 'probe' && this.#load?.isLow(nowMs) === true) return isDead || hasRoom ? 'go' : 'wait'
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
    if (this.#state === 'open') {
      const isFree = tryClass !== 'probe' && this.#load?.isLow(nowMs) === true
      if (!isFree) this.#spend(tryClass)
      this.#lastBegunMs = nowMs
      this.#load?.sick(nowMs)
      this.#onOpen?.()
    } else this.#load?.sound(nowMs)
    return this.#era
  }

  /** Counts tries that were not made because `advise` returned `skip`. */
  skipped(nowMs: number): void {
    this.#load?.sick(nowMs)
  }

  /** Call this for each `last` try that isn't made because `advise` returned `skip`. */
  forgone(): void {
    if (this.#borrowed > 0) this.#borrowed--
  }

  #spend(tryClass: TryClass): void {
    if (tryClass === 'only' || tryClass === 'first' || tryClass === 'last') return
    if (this.#credits > 0) this.#credits--
    else if (tryClass === 'again') this.#borrowed = Math.min(maxBorrowed, this.#borrowed + 1)
  }

  ended(era: number, answer: HookAnswer, nowMs: number): void {
    this.#inFlight--
    // The request started before the state changed, so its result says nothing about the new state.
    if (era !== this.#era) return
    if (this.#state === 'closed') this.#count(answer !== 'success', nowMs)
    else this.#follow(answer, nowMs)
  }

  /**
   * Call this instead of `ended` for a started request that was never sent, through no fault of the hook. The
   * request then has no result. If it was a probe, it takes the place of no last try. `era` is the number
   * that `begun` returned.
   */
  withdrawn(era: number, tryClass: TryClass): void {
    this.#inFlight--
    if (era === this.#era && tryClass === 'again' && this.#borrowed > 0) this.#borrowed--
  }

  /** Remembers that the hook asked for a pause (`Retry-After`). */
  hold(untilMs: number): void {
    this.#heldUntilMs = Math.max(this.#heldUntilMs, untilMs)
  }

  /** Forgets all results, and the pause that the hook asked for, because it may work again. */
  forgive(): void {
    this.#heldUntilMs = 0
    this.#become('closed')
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
    if (answer === 'success') {
      run.successes++
      this.#sinceSuccess = 0
      this.#lastSuccessMs = nowMs
      this.#credits = Math.min(maxCredits, this.#credits + creditsPerSuccess)
      this.#probeMs = this.#options.openMs
    } else {
      this.#sinceSuccess++
      if (this.#sinceSuccess % deadResults === 0) this.#credits = Math.floor(this.#credits / 2)
      this.#probeMs = Math.min(this.#probeMs * 2, this.#options.maxOpenMs)
    }
    if (run.results >= this.#options.minResults) this.#endRun()
  }

  #endRun(): void {
    const { results, successes } = this.#run
    this.#run = newRun()
    if ((results - successes) / results < this.#options.failureShare) this.#become('closed')
  }

  /** Opens the breaker. `successes`: the number of successes among the results that open it. */
  #open(successes: number, nowMs: number): void {
    this.#become('open')
    this.#openedMs = nowMs
    this.#run = newRun()
    this.#credits = successes * creditsPerSuccess
    this.#borrowed = 0
    this.#sinceSuccess = successes === 0 ? deadResults : 0
    this.#lastBegunMs = nowMs
    this.#probeMs = this.#options.openMs
    this.#onOpen?.()
  }

  #become(state: BreakerState): void {
    this.#state = state
    this.#era++
    this.#older = { results: 0, failures: 0 }
    this.#newer = { results: 0, failures: 0 }
  }
}
