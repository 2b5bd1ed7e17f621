import type { Endpoint, EndpointHook } from '../delivery/endpoint.ts'
import type { Outcome } from '../delivery/outcome.ts'
import type { Exchange, Sender } from '../delivery/sender.ts'
import type { SignedMessage } from '../delivery/signature.ts'
import { judge, type Verdict } from '../delivery/verdict.ts'
import type { HookResult } from './decision.ts'

/** Hears of all attempts; each tells which delivery it is of. */
export type AttemptListener<D> = {
  /** One request has its outcome. */
  answered(delivery: D, result: HookResult, durationMs: number): void
  /** Whether a further hook may be tried, after one that didn't take it. */
  mayGoOn(delivery: D): boolean
  /** All that were tried have their outcome. `startedMs` is in epoch milliseconds. */
  concluded(delivery: D, endpoint: Endpoint, results: readonly HookResult[], startedMs: number): void
  /** All connection slots are free again. */
  released(delivery: D): void
}

type AttemptParts<D> = {
  sender: Sender
  endpoint: Endpoint
  hooks: readonly EndpointHook[]
  listener: AttemptListener<D>
  delivery: D
  startedMs: number
}

/**
 * One attempt of a delivery: a request to each of `hooks` at once, or with `failover` one after the other
 * until one succeeds.
 */
export class Attempt<D extends SignedMessage> {
  readonly #parts: AttemptParts<D>
  /** Made once for all hooks. */
  readonly #signatureHeaders: readonly string[]
  readonly #results: HookResult[] = []
  #begun = 0
  #isConcluded = false
  #released = 0

  constructor(parts: AttemptParts<D>) {
    this.#parts = parts
    this.#signatureHeaders = parts.endpoint.sign(parts.delivery, parts.startedMs)
  }

  get #isFailover(): boolean {
    return this.#parts.endpoint.definition.strategy === 'failover'
  }

  start(): void {
    if (this.#isFailover) this.#beginNext()
    else while (this.#begun < this.#parts.hooks.length) this.#beginNext()
  }

  #beginNext(): void {
    const { sender, hooks, delivery } = this.#parts
    const hook = hooks[this.#begun]
    if (hook === undefined) return
    this.#begun++
    const exchange = new HookExchange(this, hook)
    if (hook.refusal === undefined) sender.post(hook.target, delivery.body, this.#signatureHeaders, exchange)
    else exchange.refused(hook.refusal)
  }

  answered(result: HookResult, durationMs: number): void {
    this.#results.push(result)
    const { listener, delivery, hooks } = this.#parts
    listener.answered(delivery, result, durationMs)
    if (this.#isFailover && this.#goesOnAfter(result)) this.#beginNext()
    else if (this.#results.length === (this.#isFailover ? this.#begun : hooks.length)) this.#conclude()
  }

  released(): void {
    this.#released++
    this.#reportReleased()
  }

  #goesOnAfter({ verdict }: HookResult): boolean {
    const { listener, delivery, hooks } = this.#parts
    return verdict.kind !== 'delivered' && this.#begun < hooks.length && listener.mayGoOn(delivery)
  }

  #conclude(): void {
    this.#isConcluded = true
    const { listener, delivery, endpoint, startedMs } = this.#parts
    listener.concluded(delivery, endpoint, this.#results, startedMs)
    this.#reportReleased()
  }

  #reportReleased(): void {
    const { listener, delivery } = this.#parts
    if (this.#isConcluded && this.#released === this.#begun) listener.released(delivery)
  }
}

/** How long a hook is left alone after a 429 that names no time. */
const throttledPauseMs = 1_000

type Answered = { answered(result: HookResult, durationMs: number): void; released(): void }

class HookExchange implements Exchange {
  readonly #attempt: Answered
  readonly #hook: EndpointHook
  readonly #startedMs = performance.now()
  /** The breaker's state at the beginning, to tell it what its result is about. */
  readonly #era: number

  constructor(attempt: Answered, hook: EndpointHook) {
    this.#attempt = attempt
    this.#hook = hook
    this.#era = hook.breaker.begun(this.#startedMs)
  }

  answered(outcome: Outcome, mayHaveArrived: boolean): void {
    const nowMs = performance.now()
    const verdict = judge(outcome)
    if (outcome.kind === 'proxy') this.#hook.breaker.withdrawn(this.#era)
    else this.#tellBreaker(outcome, verdict, nowMs)
    this.#attempt.answered(
      { hookId: this.#hook.id, outcome, verdict, mayHaveArrived },
      nowMs - this.#startedMs,
    )
  }

  released(): void {
    this.#attempt.released()
  }

  /** Nothing was sent, and nothing ever can be. */
  refused(detail: string): void {
    this.answered({ kind: 'request', detail }, false)
    this.released()
  }

  /** A hook that says 429 works, and asks for less: it is slowed, not broken. */
  #tellBreaker(outcome: Outcome, verdict: Verdict, nowMs: number): void {
    const { breaker } = this.#hook
    const isThrottled = outcome.kind === 'answer' && outcome.status === 429
    breaker.ended(this.#era, verdict.kind === 'retry' && !isThrottled, nowMs)
    if (verdict.kind !== 'retry') return
    const pauseMs = verdict.afterMs > 0 || !isThrottled ? verdict.afterMs : throttledPauseMs
    if (pauseMs > 0) breaker.hold(nowMs + Math.min(pauseMs, breaker.maxHoldMs))
  }
}
