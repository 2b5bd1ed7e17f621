import type { TryClass } from '../delivery/breaker.ts'
import type { Bulkhead, BulkheadDropReason, PacedTry } from '../delivery/bulkhead.ts'
import type { Endpoint, EndpointHook } from '../delivery/endpoint.ts'
import type { Outcome } from '../delivery/outcome.ts'
import { heldUntil } from '../delivery/retry-after.ts'
import type { Exchange, Sender } from '../delivery/sender.ts'
import type { SignedMessage } from '../delivery/signature.ts'
import { judge, type Verdict } from '../delivery/verdict.ts'
import type { HookResult } from './decision.ts'
import type { DeliveryTrace } from './delivery-trace.ts'

/** Why a hook got no request in an attempt. `proxy`: our proxy failed. */
export type OmitReason = BulkheadDropReason | 'proxy'

export const omitReasons: readonly OmitReason[] = [
  'full',
  'waited',
  'skipped',
  'changed',
  'standing',
  'abandoned',
  'closed',
  'proxy',
]

/** A hook that got no request. */
export type Omitted = { readonly hookId: string; readonly why: OmitReason }

/** What came of an attempt. */
export type AttemptResults = {
  /** None where all hooks were left out. */
  readonly results: readonly HookResult[]
  readonly omitted: readonly Omitted[]
  /** Epoch milliseconds. */
  readonly startedMs: number
}

/** Hears of all attempts; each tells which delivery it is of. */
export type AttemptListener<D> = {
  /** The first request is about to be made, at once or through the bulkhead. */
  begun(delivery: D, way: Way): void
  /** One request has its outcome. */
  answered(delivery: D, result: HookResult, durationMs: number): void
  /** Whether its destination is still as it was when the attempt began. */
  isCurrent(delivery: D, endpoint: Endpoint): boolean
  /** Whether its unit stands still: nothing more is sent through the bulkhead then. */
  standsStill(delivery: D): boolean
  /** Whether a further hook may be tried, after one that didn't take it. */
  mayGoOn(delivery: D): boolean
  /**
   * What came of it is known: a hook took it, or each has its outcome or was left out. Told once.
   */
  concluded(delivery: D, endpoint: Endpoint, attempted: AttemptResults): void
  /** After that: a hook got no request. */
  omitted(delivery: D, omitted: Omitted): void
  /** Nothing of it is under way any more outside of the bulkhead. Told once. */
  freed(delivery: D, isConcluded: boolean): void
  /** Nothing of it is under way any more, and it is concluded. Told once, the last of all. */
  ended(delivery: D): void
}

type AttemptParts<D> = {
  sender: Sender
  bulkhead: Bulkhead
  endpoint: Endpoint
  /** In the order in which they have their turn. */
  hooks: readonly EndpointHook[]
  /** Of these, those that get their request through the bulkhead. */
  sick: readonly EndpointHook[]
  /** What such a request is. */
  tryClass: TryClass
  /** A success ends it only when all others have their outcome as well: what they may still do matters. */
  isForAll: boolean
  listener: AttemptListener<D>
  delivery: D
  startedMs: number
  /** Epoch milliseconds. */
  now: () => number
}

export type Attempted = SignedMessage & {
  readonly body: Uint8Array
  readonly isAbandoned: boolean
  /** Only where tracing is on. */
  readonly trace?: Pick<DeliveryTrace, 'posting'> | undefined
  /** The replay that it came by; '' is none. */
  readonly replayJob: string
}

/**
 * One attempt of a delivery: a request to each hook, those that aren't well in their own time; the first
 * success concludes it. With `failover` one after the other until one succeeds.
 */
export class Attempt<D extends Attempted> {
  readonly #parts: AttemptParts<D>
  readonly #results: HookResult[] = []
  #omitted: readonly Omitted[] = none
  /** Made once for all hooks that are sent their request at once. */
  #signatureHeaders: readonly string[] | undefined
  /** Of the hooks in question, those that were sent a request, handed to the bulkhead, or left out. */
  #begun = 0
  /** Requests to hooks that are well, and requests through the bulkhead, that are not over. */
  #open = 0
  #paced = 0
  #isBegun = false
  #isStarting = true
  #isConcluded = false
  #isFreed = false
  #isOver = false

  constructor(parts: AttemptParts<D>) {
    this.#parts = parts
  }

  get #isFailover(): boolean {
    return this.#parts.endpoint.definition.strategy === 'failover'
  }

  start(): void {
    if (this.#isFailover) this.#beginNext()
    else while (this.#begun < this.#parts.hooks.length) this.#beginNext()
    this.#isStarting = false
    this.#goOn()
  }

  #beginNext(): void {
    const { hooks, sick, tryClass, bulkhead } = this.#parts
    const place = this.#begun++
    const hook = hooks[place]
    if (hook === undefined) return
    if (!sick.includes(hook)) {
      this.#open++
      new HookExchange(this, hook, tryClass, 'open').start()
      return
    }
    // With `failover` one that comes before a hook that is well is there to see whether it is well too.
    const isProbe = this.#isFailover && this.#isWellAfter(place)
    const paced = new HookExchange(this, hook, isProbe ? 'between' : tryClass, 'paced')
    this.#paced++
    const taken = bulkhead.offer(paced)
    if (taken !== 'taken') this.leftOut(hook, taken)
  }

  #isWellAfter(place: number): boolean {
    const { hooks, sick } = this.#parts
    return hooks.some((hook, at) => at > place && !sick.includes(hook))
  }

  get obstacle(): PacedTry['obstacle'] {
    const { delivery, endpoint, listener } = this.#parts
    if (!this.#isConcluded && delivery.isAbandoned) return 'abandoned'
    if (!this.#isConcluded && listener.standsStill(delivery)) return 'standing'
    return listener.isCurrent(delivery, endpoint) ? undefined : 'changed'
  }

  get bytes(): number {
    return this.#parts.delivery.body.length
  }

  begin(way: Way): void {
    if (this.#isBegun) return
    this.#isBegun = true
    this.#parts.listener.begun(this.#parts.delivery, way)
  }

  post(hook: EndpointHook, exchange: Exchange, way: Way): void {
    const { sender, delivery, startedMs, now } = this.#parts
    // A signature tells its time, and what was paced may have waited.
    const headers =
      way === 'paced' ? this.#headersAt(now()) : (this.#signatureHeaders ??= this.#headersAt(startedMs))
    const { trace } = delivery
    sender.post(
      hook.target,
      delivery.body,
      trace === undefined ? headers : trace.posting(hook, headers),
      exchange,
    )
  }

  /** What a request has beside the hook's own headers. */
  #headersAt(nowMs: number): readonly string[] {
    const { delivery, endpoint } = this.#parts
    const signature = endpoint.sign(delivery, nowMs)
    return delivery.replayJob === '' ? signature : [...signature, 'X-Sluice-Replay', delivery.replayJob]
  }

  answered(result: HookResult, durationMs: number): void {
    const { listener, delivery } = this.#parts
    listener.answered(delivery, result, durationMs)
    if (this.#isConcluded) {
      if (result.outcome.kind === 'proxy') listener.omitted(delivery, { hookId: result.hookId, why: 'proxy' })
      return
    }
    this.#results.push(result)
    this.#goOn()
  }

  leftOut({ id }: EndpointHook, why: BulkheadDropReason): void {
    const { listener, delivery } = this.#parts
    this.#paced--
    if (this.#isConcluded) {
      listener.omitted(delivery, { hookId: id, why })
      this.#reportEnd()
      return
    }
    this.#omitted = [...this.#omitted, { hookId: id, why }]
    this.#goOn()
  }

  released(way: Way, paced: PacedTry): void {
    if (way === 'open') this.#open--
    else {
      this.#paced--
      this.#parts.bulkhead.ended(paced)
    }
    this.#reportEnd()
  }

  /** The next hook, or the conclusion, if it is time for that. */
  #goOn(): void {
    // What is refused at once comes in the middle of the start.
    if (this.#isStarting || this.#isConcluded) return
    const isTaken = this.#results.some(({ verdict }) => verdict.kind === 'delivered')
    const isAllKnown = this.#results.length + this.#omitted.length === this.#begun
    if (this.#isFailover && isAllKnown && !isTaken && this.#mayBeginNext()) this.#beginNextInTurn()
    else if (isAllKnown || (isTaken && !this.#parts.isForAll)) this.#conclude()
    this.#reportEnd()
  }

  #mayBeginNext(): boolean {
    const { listener, delivery } = this.#parts
    return this.#begun < this.#parts.hooks.length && listener.mayGoOn(delivery)
  }

  #beginNextInTurn(): void {
    this.#isStarting = true
    this.#beginNext()
    this.#isStarting = false
    this.#goOn()
  }

  #conclude(): void {
    this.#isConcluded = true
    const { listener, delivery, endpoint, startedMs } = this.#parts
    const attempted = { results: this.#results, omitted: this.#omitted, startedMs }
    listener.concluded(delivery, endpoint, attempted)
  }

  #reportEnd(): void {
    if (this.#isStarting) return
    const { listener, delivery } = this.#parts
    const mayBeginMore = this.#isFailover && !this.#isConcluded && this.#isWellAfter(this.#begun - 1)
    if (!this.#isFreed && this.#open === 0 && !mayBeginMore) {
      this.#isFreed = true
      listener.freed(delivery, this.#isConcluded)
    }
    if (this.#isConcluded && this.#open === 0 && this.#paced === 0 && !this.#isOver) {
      this.#isOver = true
      listener.ended(delivery)
    }
  }
}

const none: readonly Omitted[] = []

/** How long a hook is left alone after a 429 that names no time. */
const throttledPauseMs = 1_000

/** Whether a request is made at once or through the bulkhead. */
export type Way = 'open' | 'paced'

type Owner = {
  readonly obstacle: PacedTry['obstacle']
  readonly bytes: number
  begin(way: Way): void
  post(hook: EndpointHook, exchange: Exchange, way: Way): void
  answered(result: HookResult, durationMs: number): void
  leftOut(hook: EndpointHook, why: BulkheadDropReason): void
  released(way: Way, paced: PacedTry): void
}

/** One request to one hook. */
class HookExchange implements Exchange, PacedTry {
  readonly hook: EndpointHook
  readonly tryClass: TryClass
  readonly #attempt: Owner
  readonly #way: Way
  #startedMs = 0
  /** The breaker's state at the beginning, to tell it what its result is about. */
  #era = 0

  constructor(attempt: Owner, hook: EndpointHook, tryClass: TryClass, way: Way) {
    this.#attempt = attempt
    this.hook = hook
    this.tryClass = tryClass
    this.#way = way
  }

  get bytes(): number {
    return this.#attempt.bytes
  }

  get obstacle(): PacedTry['obstacle'] {
    return this.#attempt.obstacle
  }

  dropped(why: BulkheadDropReason): void {
    this.#attempt.leftOut(this.hook, why)
  }

  start(): void {
    const { hook } = this
    this.#attempt.begin(this.#way)
    this.#startedMs = performance.now()
    this.#era = hook.breaker.begun(this.#startedMs, this.tryClass)
    if (hook.refusal === undefined) this.#attempt.post(hook, this, this.#way)
    else this.#refused(hook.refusal)
  }

  answered(outcome: Outcome, mayHaveArrived: boolean): void {
    const nowMs = performance.now()
    const verdict = judge(outcome)
    if (outcome.kind === 'proxy') this.hook.breaker.withdrawn()
    else this.#tellBreaker(outcome, verdict, nowMs)
    const result = { hookId: this.hook.id, outcome, verdict, mayHaveArrived }
    this.#attempt.answered(result, nowMs - this.#startedMs)
  }

  released(): void {
    this.#attempt.released(this.#way, this)
  }

  /** Nothing was sent, and nothing ever can be. */
  #refused(detail: string): void {
    this.answered({ kind: 'request', detail }, false)
    this.released()
  }

  /** A hook that says 429 works, and asks for less: it is slowed, not broken. */
  #tellBreaker(outcome: Outcome, verdict: Verdict, nowMs: number): void {
    const { breaker } = this.hook
    const isThrottled = outcome.kind === 'answer' && outcome.status === 429
    const hasFailed = verdict.kind === 'retry' && !isThrottled
    breaker.ended(
      this.#era,
      hasFailed ? (outcome.kind === 'timeout' ? 'timeout' : 'failure') : 'success',
      nowMs,
    )
    if (verdict.kind !== 'retry') return
    const pauseMs = verdict.afterMs > 0 || !isThrottled ? verdict.afterMs : throttledPauseMs
    if (pauseMs > 0) breaker.hold(heldUntil(nowMs, pauseMs, breaker.maxHoldMs))
  }
}
