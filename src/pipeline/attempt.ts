import type { Endpoint, EndpointHook } from '../delivery/endpoint.ts'
import type { Outcome } from '../delivery/outcome.ts'
import type { Exchange, Sender } from '../delivery/sender.ts'
import { judge, type Verdict } from '../delivery/verdict.ts'
import type { HookResult } from './decision.ts'

export type AttemptListener = {
  /** One request has its outcome. */
  answered(result: HookResult, durationMs: number): void
  /** All that were tried have. */
  concluded(results: readonly HookResult[]): void
  /** All connection slots are free again. */
  released(): void
}

/**
 * One attempt of a delivery: a request to each of `hooks` at once, or with `failover` one after the other
 * until one succeeds. `mayGoOn` is asked before each further request of a failover.
 */
export class Attempt {
  readonly #sender: Sender
  readonly #endpoint: Endpoint
  readonly #hooks: readonly EndpointHook[]
  readonly #body: Uint8Array
  readonly #signature: string | undefined
  readonly #listener: AttemptListener
  readonly #mayGoOn: () => boolean
  readonly #results: HookResult[] = []
  #begun = 0
  #isConcluded = false
  #released = 0

  constructor(
    sender: Sender,
    endpoint: Endpoint,
    hooks: readonly EndpointHook[],
    body: Uint8Array,
    listener: AttemptListener,
    mayGoOn: () => boolean,
  ) {
    this.#sender = sender
    this.#endpoint = endpoint
    this.#hooks = hooks
    this.#body = body
    this.#signature = endpoint.sign(body)
    this.#listener = listener
    this.#mayGoOn = mayGoOn
  }

  get #isFailover(): boolean {
    return this.#endpoint.definition.strategy === 'failover'
  }

  start(): void {
    if (this.#isFailover) this.#beginNext()
    else while (this.#begun < this.#hooks.length) this.#beginNext()
  }

  #beginNext(): void {
    const hook = this.#hooks[this.#begun]
    if (hook === undefined) return
    this.#begun++
    this.#sender.post(hook.target, this.#body, this.#signature, new HookExchange(this, hook))
  }

  answered(result: HookResult, durationMs: number): void {
    this.#results.push(result)
    this.#listener.answered(result, durationMs)
    if (this.#isFailover && this.#goesOnAfter(result)) this.#beginNext()
    else if (this.#results.length === (this.#isFailover ? this.#begun : this.#hooks.length)) this.#conclude()
  }

  released(): void {
    this.#released++
    this.#reportReleased()
  }

  #goesOnAfter({ verdict }: HookResult): boolean {
    return verdict.kind !== 'delivered' && this.#begun < this.#hooks.length && this.#mayGoOn()
  }

  #conclude(): void {
    this.#isConcluded = true
    this.#listener.concluded(this.#results)
    this.#reportReleased()
  }

  #reportReleased(): void {
    if (this.#isConcluded && this.#released === this.#begun) this.#listener.released()
  }
}

/** How long a hook is left alone after a 429 that names no time. */
const throttledPauseMs = 1_000

class HookExchange implements Exchange {
  readonly #attempt: Attempt
  readonly #hook: EndpointHook
  readonly #startedMs = performance.now()
  /** The breaker's state at the beginning, to tell it what its result is about. */
  readonly #era: number

  constructor(attempt: Attempt, hook: EndpointHook) {
    this.#attempt = attempt
    this.#hook = hook
    this.#era = hook.breaker.begun(this.#startedMs)
  }

  answered(outcome: Outcome): void {
    const nowMs = performance.now()
    const verdict = judge(outcome)
    this.#tellBreaker(outcome, verdict, nowMs)
    this.#attempt.answered({ hookId: this.#hook.id, outcome, verdict }, nowMs - this.#startedMs)
  }

  released(): void {
    this.#attempt.released()
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
