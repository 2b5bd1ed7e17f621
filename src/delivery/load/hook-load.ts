import { loadSignOf } from '../outcomes/load-sign.ts'
import type { Outcome } from '../outcomes/outcome.ts'
import { LearnedLimit } from './learned-limit.ts'
import { LearnedPace } from './learned-pace.ts'

/** The weight of the last request in the average of how long requests take. */
const latencyWeight = 0.3
/** The longest pause between requests to a hook that answers none of them, in milliseconds. */
const mostPauseOfDeadMs = 10_000

type HookLoadOptions = {
  /** False: the ceiling is the limit all the time. */
  readonly isLearned?: boolean
  /** Called at each request that starts or ends while the hook may get less than it could. */
  readonly onLowered?: () => void
}

/**
 * What was learned about the load that a hook's server takes: how many requests at once, and how many a
 * second. All times are milliseconds of one monotonic clock.
 */
export class HookLoad {
  readonly #limit: LearnedLimit
  readonly #ceiling: number
  readonly #isLearned: boolean
  readonly #onLowered: (() => void) | undefined
  readonly #pace = new LearnedPace()
  #latencyMs = 0
  #lastBegunMs = Number.NEGATIVE_INFINITY

  /**
   * `shareOfGroup` returns the fraction of the group that this worker is, above 0 and up to 1. `ceiling`: the
   * most requests that this worker may have in flight.
   */
  constructor(
    shareOfGroup: () => number,
    ceiling: number,
    { isLearned = true, onLowered }: HookLoadOptions = {},
  ) {
    this.#limit = new LearnedLimit(shareOfGroup, ceiling)
    this.#ceiling = ceiling
    this.#isLearned = isLearned
    this.#onLowered = onLowered
  }

  /** The most requests that this worker may have in flight. */
  get cap(): number {
    return this.#isLearned ? this.#limit.cap : this.#ceiling
  }

  /** False if the rate of requests certainly isn't limited. This takes less time than `perSecondAt`. */
  get mayBePaced(): boolean {
    return this.#isLearned && (this.#pace.isSet || this.#limit.part < 1)
  }

  /** The most requests that this worker may start in a second. `undefined`: the rate isn't limited. */
  perSecondAt(nowMs: number): number | undefined {
    if (!this.#isLearned) return undefined
    const pace = this.#pace.at(nowMs)
    const { part, isDead } = this.#limit
    if (part >= 1 || this.#latencyMs === 0) return pace
    const everyMs = this.#latencyMs / part
    const perSecond = 1_000 / (isDead ? Math.min(everyMs, mostPauseOfDeadMs) : everyMs)
    return pace === undefined ? perSecond : Math.min(pace, perSecond)
  }

  /**
   * True if this worker has learned to send less than it would, and has sent something in the last `withinMs`
   * milliseconds.
   */
  isLowered(nowMs: number, withinMs: number): boolean {
    if (!this.#isLearned || nowMs - this.#lastBegunMs > withinMs) return false
    const isBelow = this.#limit.wasLowered && this.#limit.cap < this.#ceiling
    return isBelow || this.#pace.at(nowMs) !== undefined
  }

  /** The time from which the next request may start. It is in the past if the rate isn't limited. */
  readyAtMs(nowMs: number): number {
    const perSecond = this.perSecondAt(nowMs)
    return perSecond === undefined ? Number.NEGATIVE_INFINITY : this.#lastBegunMs + 1_000 / perSecond
  }

  hasRoom(nowMs: number, state: 'closed' | 'open' = 'closed'): boolean {
    const { inFlight, wasLowered } = this.#limit
    // An open breaker already slows a hook that fails for other reasons than load.
    if (!this.#isLearned || (state === 'open' && !wasLowered)) return inFlight < this.#ceiling
    return inFlight < this.cap && this.readyAtMs(nowMs) <= nowMs
  }

  /** Counts a request that starts. Pass the returned number to `ended` or `withdrawn`. */
  begun(nowMs: number): number {
    this.#lastBegunMs = nowMs
    this.#tellLowered()
    return this.#limit.begun(nowMs)
  }

  ended(number: number, outcome: Outcome, begunMs: number, nowMs: number): void {
    const ms = nowMs - begunMs
    this.#latencyMs = this.#latencyMs === 0 ? ms : this.#latencyMs + latencyWeight * (ms - this.#latencyMs)
    const sign = loadSignOf(outcome)
    // A hook that says how long to wait gets this pause from its breaker. Nothing more is learned from it.
    const isPaused = sign === 'throttled' && hasRetryAfter(outcome)
    if (sign === 'answered') this.#pace.answered(nowMs)
    else if (sign === 'throttled' && !isPaused) this.#pace.throttled(begunMs, nowMs)
    this.#limit.ended(number, begunMs, isPaused ? 'nothing' : sign, nowMs)
    this.#tellLowered()
  }

  /** Call this instead of `ended` for a request that was never sent, through no fault of the hook. */
  withdrawn(number: number, nowMs: number): void {
    this.#limit.withdrawn(number, nowMs)
  }

  #tellLowered(): void {
    if (this.#isLearned && (this.#limit.wasLowered || this.#pace.isSet)) this.#onLowered?.()
  }
}

function hasRetryAfter(outcome: Outcome): boolean {
  return outcome.kind === 'answer' && outcome.retryAfterMs !== undefined
}
