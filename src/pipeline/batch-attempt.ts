import { batchBody, batchIdOf } from '../delivery/batch/batch-body.ts'
import {
  outcomeOfRequest,
  readsStatuses,
  settledOf,
  type Settlement,
  settlementOf,
  wholeOutcomeOf,
} from '../delivery/batch/batch-answer.ts'
import { Halving } from '../delivery/batch/halving.ts'
import { TriedSizes } from '../delivery/batch/taken-size.ts'
import type { EndpointHook } from '../delivery/endpoint.ts'
import type { TryClass } from '../delivery/lanes/breaker.ts'
import type { BulkheadDropReason, PacedTry } from '../delivery/lanes/bulkhead.ts'
import { isOwnFault, type Outcome } from '../delivery/outcomes/outcome.ts'
import { judge, type Verdict } from '../delivery/outcomes/verdict.ts'
import { type LoggedInListener, postLoggedIn } from '../delivery/login/logged-in-exchange.ts'
import {
  alsoWithoutLogin,
  type Attempted,
  type AttemptListener,
  type AttemptParts,
  madeBytes,
  type Omitted,
  tellBreaker,
  type Way,
} from './attempt.ts'
import type { HookResult } from './decision.ts'

export type Batched = Attempted & {
  /** Set if a request that takes effect late could do harm. Every hook's outcome is then waited for. */
  readonly property: unknown
}

/** Callbacks for all batches. Those about one delivery are called as for an attempt of its own. */
export type BatchListener<D> = AttemptListener<D> & {
  /** Called before `freed`, for each delivery but the lead that then still waits for failing hooks. */
  waits(delivery: D): void
  /** Called before each request, with the number of its messages and the bytes that it holds beside them. */
  posting(messages: number, bytes: number): void
  /** Called when a request holds its bytes no more. */
  released(bytes: number): void
}

type BatchParts<D> = Omit<AttemptParts<D>, 'isForAll' | 'delivery' | 'listener'> & {
  readonly listener: BatchListener<D>
  /** The delivery that has the place in the lane. */
  readonly lead: D
  /** The deliveries of the batch, in the order of its messages. `lead` isn't among them if it had no turn. */
  readonly deliveries: readonly D[]
}

class Member<D> {
  readonly delivery: D
  results: readonly HookResult[] = noResults
  omitted: readonly Omitted[] = none
  /** The number of hooks from which a result is expected. */
  asked = 0
  isBegun = false
  isConcluded = false

  constructor(delivery: D) {
    this.delivery = delivery
  }
}

const none: readonly Omitted[] = []
const noResults: readonly HookResult[] = []

type Composed = { readonly body: Buffer; readonly headers: readonly string[] }

/**
 * An attempt of several deliveries, with one request to each hook. Each delivery is concluded by itself, as
 * in an attempt of its own (`Attempt`): by what the answer says of its message, or of the whole batch. If a
 * hook refuses the batch, its halves are sent to this hook one after the other, until the messages are alone
 * because of which it was refused.
 */
export class BatchAttempt<D extends Batched> {
  readonly #parts: BatchParts<D>
  readonly #members: readonly Member<D>[]
  /** The request with all members, which is made only once for hooks that are asked at the same time. */
  #whole: Composed | undefined
  /** The number of hooks whose requests were already begun, offered to the bulkhead, or left out. */
  #begun = 0
  /** The numbers of hooks with requests that have not ended: at once, and through the bulkhead. */
  #open = 0
  #paced = 0
  #unconcluded: number
  #isStarting = true
  #isFreed = false
  #isOver = false

  constructor(parts: BatchParts<D>) {
    this.#parts = parts
    this.#members = parts.deliveries.map((delivery) => new Member(delivery))
    this.#unconcluded = this.#members.length
  }

  get #isFailover(): boolean {
    return this.#parts.endpoint.definition.strategy === 'failover'
  }

  start(): void {
    if (this.#isFailover) this.#beginNext(this.#members)
    else while (this.#begun < this.#parts.hooks.length) this.#beginNext(this.#members)
    this.#started()
  }

  #started(): void {
    this.#isStarting = false
    for (const member of this.#members) this.#goOn(member)
    if (this.#isFailover && this.#open === 0 && this.#paced === 0) this.#askNextHook()
    this.#reportEnd()
  }

  #beginNext(members: readonly Member<D>[]): void {
    const { hooks, sick, tryClass, bulkhead } = this.#parts
    const place = this.#begun++
    const hook = hooks[place]
    if (hook === undefined) return
    for (const member of members) member.asked++
    if (!sick.includes(hook)) {
      this.#open++
      new HookRun(this, hook, { tryClass, way: 'open', members }).start()
      return
    }
    const isProbe = this.#isFailover && this.#isWellAfter(place)
    const run = new HookRun(this, hook, { tryClass: isProbe ? 'probe' : tryClass, way: 'paced', members })
    this.#paced++
    const taken = bulkhead.offer(run)
    if (taken !== 'taken') run.dropped(taken)
  }

  #isWellAfter(place: number): boolean {
    const { hooks, sick } = this.#parts
    return hooks.some((hook, at) => at > place && !sick.includes(hook))
  }

  /** Returns why none of these members may be sent; `undefined` if one of them may. */
  obstacleTo(members: readonly Member<D>[]): PacedTry['obstacle'] {
    const [obstacle, ...others] = members.map((member) => this.obstacleOf(member))
    return others.every((other) => other !== undefined) ? obstacle : undefined
  }

  obstacleOf({ delivery, isConcluded }: Member<D>): PacedTry['obstacle'] {
    const { listener, endpoint } = this.#parts
    if (!isConcluded && delivery.isAbandoned) return 'abandoned'
    if (!isConcluded && listener.isUnitStopped(delivery)) return 'stopped'
    return listener.isCurrent(delivery, endpoint) ? undefined : 'changed'
  }

  /** Leaves out the members that must not be sent any more, and returns the others. */
  withoutObstacles(hook: EndpointHook, members: readonly Member<D>[]): readonly Member<D>[] {
    return members.filter((member) => {
      const obstacle = this.obstacleOf(member)
      if (obstacle !== undefined) this.leftOut(member, hook, obstacle)
      return obstacle === undefined
    })
  }

  begin(members: readonly Member<D>[], way: Way): void {
    for (const member of members) {
      if (member.isBegun) continue
      member.isBegun = true
      this.#parts.listener.begun(member.delivery, way)
    }
  }

  /** Returns true if requests with parts of a refused batch may be made now. */
  mayGoOn(hook: EndpointHook, members: readonly Member<D>[]): boolean {
    const { listener, endpoint } = this.#parts
    if (hook.breaker.heldUntilMs > performance.now()) return false
    return members.every(
      ({ delivery }) => listener.mayGoOn(delivery) && listener.isCurrent(delivery, endpoint),
    )
  }

  /** Posts a request, and counts its bytes until it ends. */
  post(
    run: HookRun<D>,
    members: readonly Member<D>[],
    { way, isFirst }: { way: Way; isFirst: boolean },
  ): void {
    const { sender, startedMs, listener, now } = this.#parts
    const { hook } = run
    const isLater = way === 'paced' || this.#isFailover || members.length < this.#members.length
    const composed = isLater
      ? this.#compose(members, now())
      : (this.#whole ??= this.#compose(members, startedMs))
    const headers = isFirst ? traced(hook, members, composed.headers) : composed.headers
    run.held = composed.body.length
    listener.posting(members.length, run.held)
    const { target, login } = hook
    const { body } = composed
    if (login === undefined) sender.post(target, body, headers, run)
    else postLoggedIn(login, (own, by) => sender.post(target, body, headers.concat(own), by), run)
  }

  #compose(members: readonly Member<D>[], nowMs: number): Composed {
    const { endpoint, lead } = this.#parts
    const deliveries = members.map(({ delivery }) => delivery)
    const body = batchBody(
      endpoint.definition.batch?.format ?? 'json',
      deliveries.map(({ shaped, body: own }) => (shaped === undefined ? own : shaped.body)),
    )
    const messageId = batchIdOf(deliveries.map((delivery) => delivery.messageId))
    const attempts = Math.max(...deliveries.map((delivery) => delivery.attempts))
    const headers = endpoint.headersOf({ messageId, body, attempts }, nowMs)
    return {
      body,
      headers: lead.replayJob === '' ? headers : [...headers, 'X-Sluice-Replay', lead.replayJob],
    }
  }

  released(bytes: number): void {
    this.#parts.listener.released(bytes)
  }

  /** `alone`: a list of `result` alone, which all members share that have no other result. */
  settled(member: Member<D>, alone: readonly [HookResult], durationMs: number): void {
    const [result] = alone
    const { listener, endpoint } = this.#parts
    const { delivery } = member
    listener.answered(delivery, result, durationMs)
    if (member.isConcluded) {
      const { hookId, outcome } = result
      if (isOwnFault(outcome)) listener.omitted(delivery, { hookId, why: outcome.kind })
      listener.cameLate(endpoint, result)
      return
    }
    member.results = member.results.length === 0 ? alone : [...member.results, result]
    this.#goOn(member)
  }

  leftOut(member: Member<D>, { id }: EndpointHook, why: BulkheadDropReason): void {
    const omitted = { hookId: id, why }
    if (member.isConcluded) {
      this.#parts.listener.omitted(member.delivery, omitted)
      return
    }
    member.omitted = [...member.omitted, omitted]
    this.#goOn(member)
  }

  /** Called when all requests to a hook have ended, or when it gets none. `isStarted`: it got its turn. */
  ended(run: PacedTry, way: Way, isStarted: boolean): void {
    if (way === 'open') this.#open--
    else {
      this.#paced--
      if (isStarted) this.#parts.bulkhead.ended(run)
    }
    if (this.#isFailover && !this.#isStarting) this.#askNextHook()
    this.#reportEnd()
  }

  #goOn(member: Member<D>): void {
    // If the request to a hook is refused at once, this method is called before the start is complete.
    if (this.#isStarting || member.isConcluded) return
    const isTaken = member.results.some(({ verdict }) => verdict.kind === 'delivered')
    const isAllKnown = member.results.length + member.omitted.length === member.asked
    const isForAll = member.delivery.property !== undefined
    if (isTaken ? isAllKnown || !isForAll : isAllKnown && !this.#mayAskMore(member)) this.#conclude(member)
  }

  #mayAskMore({ delivery }: Member<D>): boolean {
    const { listener, endpoint, hooks } = this.#parts
    return this.#begun < hooks.length && listener.mayGoOn(delivery) && listener.isCurrent(delivery, endpoint)
  }

  /** With `failover`, asks the next hook with the members that no hook has accepted. */
  #askNextHook(): void {
    const left = this.#members.filter(({ isConcluded }) => !isConcluded)
    const going = left.filter((member) => this.#mayAskMore(member))
    for (const member of left) if (!going.includes(member)) this.#conclude(member)
    if (going.length === 0) return
    this.#isStarting = true
    this.#beginNext(going)
    this.#started()
  }

  #conclude(member: Member<D>): void {
    member.isConcluded = true
    this.#unconcluded--
    const { listener, endpoint, hooks, withoutLogin, startedMs } = this.#parts
    const { delivery, results } = member
    const omitted = alsoWithoutLogin(member.omitted, withoutLogin)
    const isCutShort = this.#begun < hooks.length && !listener.isCurrent(delivery, endpoint)
    listener.concluded(delivery, endpoint, { results, omitted, isCutShort, startedMs })
  }

  #reportEnd(): void {
    if (this.#isStarting) return
    const { listener, lead } = this.#parts
    const isConcluded = this.#unconcluded === 0
    const mayBeginMore = this.#isFailover && !isConcluded && this.#isWellAfter(this.#begun - 1)
    if (!this.#isFreed && this.#open === 0 && !mayBeginMore) {
      this.#isFreed = true
      this.#free()
    }
    if (isConcluded && this.#open === 0 && this.#paced === 0 && !this.#isOver) {
      this.#isOver = true
      listener.ended(lead)
    }
  }

  #free(): void {
    const { listener, lead } = this.#parts
    const waiting = this.#members.filter(({ isConcluded }) => !isConcluded)
    for (const { delivery } of waiting) if (delivery !== lead) listener.waits(delivery)
    listener.freed(lead, !waiting.some(({ delivery }) => delivery === lead))
  }
}

const again: Verdict = { kind: 'retry', afterMs: 0 }

/**
 * The requests to one hook: one with all members, and if it is refused, one after the other with their
 * halves.
 */
class HookRun<D extends Batched> implements LoggedInListener, PacedTry {
  readonly hook: EndpointHook
  readonly tryClass: TryClass
  readonly bytes: number
  readonly reads = readsStatuses
  /** The bytes that the present request holds. */
  held = 0
  readonly #attempt: BatchAttempt<D>
  readonly #way: Way
  readonly #members: readonly Member<D>[]
  readonly #halving: Halving<Member<D>>
  readonly #tried = new TriedSizes()
  /** The members of the present request. */
  #part: readonly Member<D>[] = []
  /** The last answer because of which a part was halved. */
  #refusal: Outcome | undefined
  #startedMs = 0
  #era = 0
  #loadNumber = 0

  constructor(
    attempt: BatchAttempt<D>,
    hook: EndpointHook,
    { tryClass, way, members }: { tryClass: TryClass; way: Way; members: readonly Member<D>[] },
  ) {
    this.#attempt = attempt
    this.hook = hook
    this.tryClass = tryClass
    this.#way = way
    this.#members = members
    this.#halving = new Halving(members)
    this.bytes = members.reduce((sum, { delivery }) => sum + delivery.body.length + madeBytes(delivery), 0)
  }

  get userIds(): readonly (Buffer | null)[] {
    return this.#part.map(({ delivery }) => delivery.key)
  }

  get obstacle(): PacedTry['obstacle'] {
    return this.#attempt.obstacleTo(this.#members)
  }

  dropped(why: BulkheadDropReason): void {
    // The members may have different obstacles.
    for (const member of this.#halving.rest())
      this.#attempt.leftOut(member, this.hook, this.#attempt.obstacleOf(member) ?? why)
    this.#attempt.ended(this, this.#way, false)
  }

  start(): void {
    const all = this.#halving.next() ?? []
    const going = this.#way === 'open' ? all : this.#attempt.withoutObstacles(this.hook, all)
    if (going.length === 0) this.#attempt.ended(this, this.#way, true)
    else this.#send(going)
  }

  #send(part: readonly Member<D>[]): void {
    const { hook, tryClass } = this
    this.#part = part
    this.#attempt.begin(part, this.#way)
    this.#startedMs = performance.now()
    this.#era = hook.breaker.begun(this.#startedMs, tryClass)
    this.#loadNumber = hook.load.begun(this.#startedMs)
    if (hook.refusal !== undefined) {
      this.answered({ kind: 'request', detail: hook.refusal }, false)
      this.released()
      return
    }
    const isFirst = this.#refusal === undefined
    this.#attempt.post(this, part, { way: this.#way, isFirst })
  }

  wholeOf(outcome: Outcome): Outcome {
    return wholeOutcomeOf(outcome, this.#part.length)
  }

  answered(outcome: Outcome, mayHaveArrived: boolean): void {
    const nowMs = performance.now()
    const part = this.#part
    const settlement = settlementOf(outcome, part.length)
    this.#tellHook(outcomeOfRequest(outcome, settlement), nowMs)
    if (isAccepted(settlement)) this.#tried.taken(part.length)
    if (settlement.kind === 'refused' && part.length > 1) {
      if (outcome.kind === 'answer') this.#tried.refused(part.length, outcome.status)
      this.#refusal = settlement.outcome
      if (this.#attempt.mayGoOn(this.hook, part) && this.#halving.halve(part)) return
      this.#giveUp(part, nowMs)
    } else {
      const resultAt = (at: number): readonly [HookResult] => {
        const { outcome: its, verdict } = settledOf(settlement, at)
        return [{ hookId: this.hook.id, outcome: its, verdict, mayHaveArrived }]
      }
      // Usually, all messages have the same result.
      const common = settlement.kind === 'each' ? undefined : resultAt(0)
      for (const [at, member] of part.entries()) this.#settle(member, common ?? resultAt(at), nowMs)
      if (isAboutMessages(settlement)) return
    }
    this.#giveUp(this.#halving.rest(), nowMs)
  }

  /** Goes on with the next part, once the connection is free. */
  released(): void {
    this.#attempt.released(this.held)
    this.held = 0
    const part = this.#halving.next()
    if (part !== undefined && this.#attempt.mayGoOn(this.hook, part)) {
      this.#send(part)
      return
    }
    const nowMs = performance.now()
    if (part !== undefined) this.#giveUp([...part, ...this.#halving.rest()], nowMs)
    this.hook.takenSize.learn(this.#tried, nowMs)
    this.#attempt.ended(this, this.#way, true)
  }

  /** Lets members be tried again that were refused only together with others. */
  #giveUp(members: readonly Member<D>[], nowMs: number): void {
    const outcome = this.#refusal
    if (outcome === undefined) return
    const result = { hookId: this.hook.id, outcome, verdict: again, mayHaveArrived: false }
    for (const member of members) this.#settle(member, [result], nowMs)
  }

  #settle(member: Member<D>, alone: readonly [HookResult], nowMs: number): void {
    this.#attempt.settled(member, alone, nowMs - this.#startedMs)
  }

  /** A request counts once for the breaker and for what is learned, whatever the number of its messages. */
  #tellHook(outcome: Outcome, nowMs: number): void {
    const { breaker, load } = this.hook
    if (isOwnFault(outcome)) {
      breaker.withdrawn(this.#era, this.tryClass)
      load.withdrawn(this.#loadNumber, nowMs)
      return
    }
    tellBreaker(breaker, { era: this.#era, outcome, verdict: judge(outcome) }, nowMs)
    load.ended(this.#loadNumber, outcome, this.#startedMs, nowMs)
  }
}

/**
 * Returns true if an answer tells of its messages, so that other parts of a refused batch may be accepted.
 */
function isAboutMessages(settlement: Settlement): boolean {
  return settlement.kind !== 'all' || isAccepted(settlement)
}

/** Returns true if a request was accepted with all of its messages. */
function isAccepted(settlement: Settlement): boolean {
  return settlement.kind === 'all' && settlement.verdict.kind === 'delivered'
}

/**
 * Starts the traces of a request with several messages. A request names one trace, that of its first message.
 */
function traced<D extends Batched>(
  hook: EndpointHook,
  members: readonly Member<D>[],
  headers: readonly string[],
): readonly string[] {
  let named: readonly string[] | undefined
  for (const { delivery } of members) {
    const withTrace = delivery.trace?.posting(hook, headers)
    named ??= withTrace
  }
  return named ?? headers
}
