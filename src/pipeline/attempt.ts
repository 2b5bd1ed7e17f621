import type { Breaker, TryClass } from '../delivery/lanes/breaker.ts'
import type { Bulkhead, BulkheadDropReason, PacedTry } from '../delivery/lanes/bulkhead.ts'
import type { Endpoint, EndpointHook } from '../delivery/endpoint.ts'
import type { Outcome } from '../delivery/outcomes/outcome.ts'
import { heldUntil } from '../delivery/outcomes/retry-after.ts'
import { postLoggedIn } from '../delivery/login/logged-in-exchange.ts'
import type { Exchange, OwnRequest, Sender } from '../delivery/send/sender.ts'
import type { NamedMessage } from '../delivery/request-headers.ts'
import { ownRequest } from '../delivery/own-request.ts'
import type { Shaped } from '../shape/shaper.ts'
import { isOwnFault, type OwnFault } from '../delivery/outcomes/outcome.ts'
import { judge, type Verdict } from '../delivery/outcomes/verdict.ts'
import type { HookResult } from './decision.ts'
import type { DeliveryTrace } from './delivery-trace.ts'

/**
 * The reason why a hook got no request in an attempt. `proxy`: Sluice's outbound proxy failed. `files`: the
 * process could open no more files. `login`: there was no token to log in with.
 */
export type OmitReason = BulkheadDropReason | OwnFault['kind']

export const omitReasons: readonly OmitReason[] = [
  'full',
  'waited',
  'skipped',
  'changed',
  'stopped',
  'abandoned',
  'closed',
  'proxy',
  'files',
  'login',
]

/** A hook that got no request. */
export type Omitted = { readonly hookId: string; readonly why: OmitReason }

export type AttemptResults = {
  /** The results of the hooks that got a request. Empty if all hooks were left out. */
  readonly results: readonly HookResult[]
  readonly omitted: readonly Omitted[]
  /** True if some hooks were not asked, because the attempt was no longer right (`isCurrent`). */
  readonly isCutShort: boolean
  /** The start of the attempt, in epoch milliseconds. */
  readonly startedMs: number
}

/** Callbacks for all attempts. Each attempt passes its delivery to these callbacks. */
export type AttemptListener<D> = {
  /**
   * Called before the first request is made. `way` says whether this request is made at once or through the
   * bulkhead.
   */
  begun(delivery: D, way: Way): void
  /** Called when a request has its outcome. */
  answered(delivery: D, result: HookResult, durationMs: number): void
  /**
   * Returns true if the attempt is still right. Returns false if the catalog has changed the destination
   * since it began, or if the user of the message may have been deleted.
   */
  isCurrent(delivery: D, endpoint: Endpoint): boolean
  /**
   * Returns true while the delivery's unit is stopped. In that case, the bulkhead sends no request of the
   * delivery.
   */
  isUnitStopped(delivery: D): boolean
  /** Returns true if the next hook may be tried now, after a hook has not accepted the message. */
  mayGoOn(delivery: D): boolean
  /**
   * Called once, when the result of the attempt is known. It is known when a hook has accepted the message,
   * or when every hook has an outcome or was left out.
   */
  concluded(delivery: D, endpoint: Endpoint, attempted: AttemptResults): void
  /** Called after `concluded` with the result of a request that was under way then. */
  cameLate(endpoint: Endpoint, result: HookResult): void
  /** Called after `concluded` for a hook that got no request. */
  omitted(delivery: D, omitted: Omitted): void
  /** Called once, when all requests of the attempt have ended, except those through the bulkhead. */
  freed(delivery: D, isConcluded: boolean): void
  /**
   * Called once, as the last of these callbacks, when the attempt is concluded and all of its requests have
   * ended.
   */
  ended(delivery: D): void
}

export type AttemptParts<D> = {
  sender: Sender
  bulkhead: Bulkhead
  endpoint: Endpoint
  /** The hooks in the order in which they are asked. */
  hooks: readonly EndpointHook[]
  /** Those of `hooks` that get their request through the bulkhead. */
  sick: readonly EndpointHook[]
  /** The hooks that get no request, because there is no token to log in with. */
  withoutLogin: readonly EndpointHook[]
  /** The class of this try. The breakers and the bulkhead use it for the hooks in `sick`. */
  tryClass: TryClass
  /**
   * True if the attempt isn't concluded before every hook has its outcome, even after a success. This is
   * necessary if another request could do harm by taking effect late.
   */
  isForAll: boolean
  listener: AttemptListener<D>
  delivery: D
  startedMs: number
  /** Returns the present time in epoch milliseconds. */
  now: () => number
}

export type Attempted = NamedMessage & {
  readonly body: Uint8Array
  /** What a mapping has made of the message. `undefined`: it is sent as it is. */
  readonly shaped?: Shaped | undefined
  readonly isAbandoned: boolean
  /** The trace of the delivery; `undefined` if tracing is off. */
  readonly trace?: Pick<DeliveryTrace, 'posting'> | undefined
  /** The id of the replay that the delivery comes from; '' if it doesn't come from a replay. */
  readonly replayJob: string
  /** The key of the message's record: the id of its user. */
  readonly key: Buffer | null
}

/** Returns the bytes that a mapping has made of a message, beside those of the message itself. */
export function madeBytes({ shaped, body }: Pick<Attempted, 'shaped' | 'body'>): number {
  return shaped === undefined || shaped.body === body ? 0 : shaped.body.length
}

/**
 * An attempt of a delivery. It makes one request to each hook. Hooks that fail or have asked for a pause get
 * their request through the bulkhead, when their turn comes. The first success concludes the attempt. With
 * the strategy `failover`, the hooks are asked one after the other until a request succeeds.
 */
export class Attempt<D extends Attempted> {
  readonly #parts: AttemptParts<D>
  readonly #results: HookResult[] = []
  #omitted: readonly Omitted[] = none
  /** The own headers of all requests that are made at the start. They are made only once. */
  #headers: readonly string[] | undefined
  /** The number of hooks whose request was already sent, offered to the bulkhead, or left out. */
  #begun = 0
  /**
   * The numbers of requests that have not ended. `#open` counts the requests that were sent at once. `#paced`
   * counts the requests that go through the bulkhead.
   */
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
    // With `failover`, a failing hook that comes before a healthy hook is asked only to find out whether the
    // failing hook has recovered (a probe).
    const isProbe = this.#isFailover && this.#isWellAfter(place)
    const paced = new HookExchange(this, hook, isProbe ? 'probe' : tryClass, 'paced')
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
    if (!this.#isConcluded && listener.isUnitStopped(delivery)) return 'stopped'
    return listener.isCurrent(delivery, endpoint) ? undefined : 'changed'
  }

  get bytes(): number {
    const { delivery } = this.#parts
    return delivery.body.length + madeBytes(delivery)
  }

  get userId(): Buffer | null {
    return this.#parts.delivery.key
  }

  ownOf({ target }: EndpointHook): OwnRequest | undefined {
    const { shaped } = this.#parts.delivery
    return shaped && ownRequest(target, shaped)
  }

  begin(way: Way): void {
    if (this.#isBegun) return
    this.#isBegun = true
    this.#parts.listener.begun(this.#parts.delivery, way)
  }

  post(hook: EndpointHook, exchange: Exchange, way: Way): void {
    const { sender, delivery, startedMs, now } = this.#parts
    // Requests that are made later than the start of the attempt get a new signature, because a signature may
    // contain the time, and because a secret may have ended since the start.
    const isLater = way === 'paced' || this.#isFailover
    const headers = isLater ? this.#headersAt(now()) : (this.#headers ??= this.#headersAt(startedMs))
    const { trace, shaped } = delivery
    const all = trace === undefined ? headers : trace.posting(hook, headers, shaped)
    const body = shaped === undefined ? delivery.body : shaped.body
    const { target, login } = hook
    if (login === undefined) sender.post(target, body, all, exchange)
    else postLoggedIn(login, (own, by) => sender.post(target, body, all.concat(own), by), exchange)
  }

  /** Returns the headers that a request has in addition to the headers of its hook. */
  #headersAt(nowMs: number): readonly string[] {
    const { delivery, endpoint } = this.#parts
    const { shaped, messageId, attempts } = delivery
    const sent = shaped === undefined ? delivery : { messageId, attempts, body: shaped.body }
    const headers = endpoint.headersOf(sent, nowMs)
    return delivery.replayJob === '' ? headers : [...headers, 'X-Sluice-Replay', delivery.replayJob]
  }

  answered(result: HookResult, durationMs: number): void {
    const { listener, delivery } = this.#parts
    listener.answered(delivery, result, durationMs)
    if (this.#isConcluded) {
      const { hookId, outcome } = result
      if (isOwnFault(outcome)) listener.omitted(delivery, { hookId, why: outcome.kind })
      listener.cameLate(this.#parts.endpoint, result)
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

  /** If the results so far allow it, starts the request to the next hook or concludes the attempt. */
  #goOn(): void {
    // If the request to a hook is refused at once, this method is called before the start is complete.
    if (this.#isStarting || this.#isConcluded) return
    const isTaken = this.#results.some(({ verdict }) => verdict.kind === 'delivered')
    const isAllKnown = this.#results.length + this.#omitted.length === this.#begun
    if (this.#isFailover && isAllKnown && !isTaken && this.#mayBeginNext()) this.#beginNextInTurn()
    else if (isAllKnown || (isTaken && !this.#parts.isForAll)) this.#conclude()
    this.#reportEnd()
  }

  #mayBeginNext(): boolean {
    const { listener, delivery, endpoint, hooks } = this.#parts
    // After an edit of the destination, the remaining hooks may have other URLs or secrets, or may be off.
    return this.#begun < hooks.length && listener.mayGoOn(delivery) && listener.isCurrent(delivery, endpoint)
  }

  #beginNextInTurn(): void {
    this.#isStarting = true
    this.#beginNext()
    this.#isStarting = false
    this.#goOn()
  }

  #conclude(): void {
    this.#isConcluded = true
    const { listener, delivery, endpoint, hooks, withoutLogin, startedMs } = this.#parts
    const isCutShort = this.#begun < hooks.length && !listener.isCurrent(delivery, endpoint)
    const omitted = alsoWithoutLogin(this.#omitted, withoutLogin)
    const attempted = { results: this.#results, omitted, isCutShort, startedMs }
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

/** Adds the hooks that got no request because there was no token to log in with. */
export function alsoWithoutLogin(
  omitted: readonly Omitted[],
  withoutLogin: readonly EndpointHook[],
): readonly Omitted[] {
  if (withoutLogin.length === 0) return omitted
  return [...omitted, ...withoutLogin.map(({ id }): Omitted => ({ hookId: id, why: 'login' }))]
}

const none: readonly Omitted[] = []

/** The pause that a hook gets after a 429 without a `Retry-After`, in milliseconds. */
const throttledPauseMs = 1_000

/** The way in which a request is made: at once (`open`) or through the bulkhead (`paced`). */
export type Way = 'open' | 'paced'

type Owner = {
  readonly obstacle: PacedTry['obstacle']
  readonly bytes: number
  readonly userId: Buffer | null
  /** Returns what a mapping has changed of the requests to a hook. */
  ownOf(hook: EndpointHook): OwnRequest | undefined
  begin(way: Way): void
  post(hook: EndpointHook, exchange: Exchange, way: Way): void
  answered(result: HookResult, durationMs: number): void
  leftOut(hook: EndpointHook, why: BulkheadDropReason): void
  released(way: Way, paced: PacedTry): void
}

/** A request to one hook. */
class HookExchange implements Exchange, PacedTry {
  readonly hook: EndpointHook
  readonly tryClass: TryClass
  readonly #attempt: Owner
  readonly #way: Way
  #startedMs = 0
  /**
   * The number that the breaker returned when the request started. It tells the breaker whether its state has
   * changed since then.
   */
  #era = 0
  /** The number that the hook's `load` returned when the request started. */
  #loadNumber = 0

  constructor(attempt: Owner, hook: EndpointHook, tryClass: TryClass, way: Way) {
    this.#attempt = attempt
    this.hook = hook
    this.tryClass = tryClass
    this.#way = way
  }

  get bytes(): number {
    return this.#attempt.bytes
  }

  get userId(): Buffer | null {
    return this.#attempt.userId
  }

  get own(): OwnRequest | undefined {
    return this.#attempt.ownOf(this.hook)
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
    this.#loadNumber = hook.load.begun(this.#startedMs)
    if (hook.refusal === undefined) this.#attempt.post(hook, this, this.#way)
    else this.#refused(hook.refusal)
  }

  answered(outcome: Outcome, mayHaveArrived: boolean): void {
    const nowMs = performance.now()
    const verdict = judge(outcome)
    const { breaker, load } = this.hook
    if (isOwnFault(outcome)) {
      breaker.withdrawn(this.#era, this.tryClass)
      load.withdrawn(this.#loadNumber, nowMs)
    } else {
      tellBreaker(breaker, { era: this.#era, outcome, verdict }, nowMs)
      load.ended(this.#loadNumber, outcome, this.#startedMs, nowMs)
    }
    const result = { hookId: this.hook.id, outcome, verdict, mayHaveArrived }
    this.#attempt.answered(result, nowMs - this.#startedMs)
  }

  released(): void {
    this.#attempt.released(this.#way, this)
  }

  /** Ends a request that can't be sent, because its hook has a `refusal`. */
  #refused(detail: string): void {
    this.answered({ kind: 'request', detail }, false)
    this.released()
  }
}

/**
 * Reports the outcome of a request to the breaker of its hook. `era`: what `begun` returned. If a hook
 * answers 429, it works but asks for fewer requests. So it doesn't count as failing, and gets a pause
 * instead.
 */
export function tellBreaker(
  breaker: Breaker,
  { era, outcome, verdict }: { era: number; outcome: Outcome; verdict: Verdict },
  nowMs: number,
): void {
  const isThrottled = outcome.kind === 'answer' && outcome.status === 429
  const hasFailed = verdict.kind === 'retry' && !isThrottled
  breaker.ended(era, hasFailed ? 'failure' : 'success', nowMs)
  if (verdict.kind !== 'retry') return
  const pauseMs = verdict.afterMs > 0 || !isThrottled ? verdict.afterMs : throttledPauseMs
  if (pauseMs > 0) breaker.hold(heldUntil(nowMs, pauseMs, breaker.maxHoldMs))
}
