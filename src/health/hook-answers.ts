import type { DestinationDefinition } from '../delivery/endpoint.ts'
import type { AskedToken } from '../delivery/login/token-login.ts'
import { hookContentsOf } from '../delivery/hook-content.ts'
import { describeForCustomer, isOwnFault, type Outcome } from '../delivery/outcomes/outcome.ts'
import type { HookResult } from '../pipeline/decision.ts'
import type { Delivery } from '../pipeline/delivery.ts'
import type { OpenHook, PipelineObserver } from '../pipeline/pipeline-ports.ts'
import type { FailingHookWord } from './health-record.ts'

/** The hooks of a destination that fail. `nextMs`: when a message that has failed is tried next. */
export type FailingFacts = {
  readonly hooks: readonly FailingHookWord[]
  readonly nextMs: number | undefined
}

type Definitions = { readonly destinations: ReadonlyMap<string, DestinationDefinition> }

/** A hook counts as failing after so many failures without a success in between. */
const leastFailures = 3
/**
 * If a hook has failed nothing for this time, in milliseconds, nobody knows whether it still would. While
 * there are messages for a hook, it gets a request at least once an hour.
 */
const quietMs = 65 * 60_000
/**
 * A breaker closes only after several results. A hook with an open breaker counts as working again if it has
 * accepted requests, and has failed none for this time in milliseconds.
 */
const steadyMs = 30_000
/** Outcomes are counted in halves of this length, in milliseconds. The last two halves are told. */
const halfMs = 5 * 60_000
/** The most kinds of outcomes that are counted apart in a half. The others are counted as `other`. */
const mostKinds = 5
const mostCharacters = 80
const mostOfProblem = 200
/** Times of next tries are rounded up to this, in milliseconds, and only the first few are known. */
const nextStepMs = 5_000
const mostNext = 32

type Counts = Map<string, number>

type Followed = {
  /** The definition with which the last request was made. */
  definition: DestinationDefinition | undefined
  /** Failures since the last success. 0: the hook works. */
  failures: number
  sinceMs: number
  failedMs: number
  succeededMs: number
  older: Counts
  newer: Counts
  newerSinceMs: number
  /** Why no token to log in with could be had, if that was the last failure. */
  loginProblem: string | undefined
}

type OfDestination = {
  readonly hooks: Map<string, Followed>
  /** When messages that have failed are tried next, in ascending order. */
  readonly next: number[]
}

/**
 * The last answers of the hooks that have failed, as this process sees them. A hook that has never failed
 * costs hardly more than one look into a map for each request. All times are epoch milliseconds.
 */
export class HookAnswers {
  readonly #destinations = new Map<string, OfDestination>()
  readonly #now: () => number

  readonly observer: Pick<PipelineObserver, 'attempted' | 'parked' | 'askedForToken'> = {
    attempted: (delivery, result) => this.#attempted(delivery, result),
    parked: ({ destinationId }, _why, waitMs) => {
      if (waitMs > 0) this.#waits(destinationId, this.#now() + waitMs)
    },
    askedForToken: (destinationId, hookId, asked, definition) => {
      if (definition !== undefined) this.#askedForToken(destinationId, hookId, asked, definition)
    },
  }

  constructor(now: () => number) {
    this.#now = now
  }

  /**
   * Returns the destinations with a hook that fails, and forgets what isn't so any more. `open`: the hooks
   * whose breakers are open.
   */
  failing(open: readonly OpenHook[], { destinations }: Definitions): ReadonlyMap<string, FailingFacts> {
    const nowMs = this.#now()
    const openForMs = new Map(open.map((hook) => [keyOf(hook.destinationId, hook.hookId), hook.openForMs]))
    const failing = new Map<string, FailingFacts>()
    for (const [destinationId, { hooks, next }] of this.#destinations) {
      const words: FailingHookWord[] = []
      for (const [hookId, followed] of hooks) {
        const openMs = openForMs.get(keyOf(destinationId, hookId)) ?? 0
        const isKept = isSame(followed, destinations.get(destinationId), hookId)
        if (!isKept || isForgotten(followed, openMs, nowMs)) hooks.delete(hookId)
        else if (fails(followed, openMs, nowMs)) words.push(wordOf(hookId, followed, { openMs, nowMs }))
      }
      if (hooks.size === 0) this.#destinations.delete(destinationId)
      else if (words.length > 0) failing.set(destinationId, { hooks: words, nextMs: nextOf(next, nowMs) })
    }
    return failing
  }

  #attempted({ destinationId, endpoint }: Delivery, { hookId, outcome, verdict }: HookResult): void {
    // Nothing was sent, and nothing is known about the hook.
    if (isOwnFault(outcome)) return
    const isFailure = verdict.kind !== 'delivered' && !isThrottled(outcome)
    const followed = isFailure
      ? this.#followedOf(destinationId, hookId)
      : this.#destinations.get(destinationId)?.hooks.get(hookId)
    if (followed === undefined) return
    const nowMs = this.#now()
    followed.definition = endpoint?.definition ?? followed.definition
    count(followed, describeForCustomer(outcome).slice(0, mostCharacters), nowMs)
    if (isFailure) {
      fail(followed, nowMs)
      followed.loginProblem = undefined
    } else if (verdict.kind === 'delivered') {
      followed.failures = 0
      followed.succeededMs = nowMs
    }
  }

  /** A hook without a token gets no request, so its failed requests for one count instead. */
  #askedForToken(
    destinationId: string,
    hookId: string,
    { problem, isKept }: AskedToken,
    definition: DestinationDefinition,
  ): void {
    if (isKept) return
    const nowMs = this.#now()
    if (problem === undefined) {
      const followed = this.#destinations.get(destinationId)?.hooks.get(hookId)
      if (followed?.loginProblem !== undefined)
        Object.assign(followed, { failures: 0, loginProblem: undefined })
      return
    }
    const followed = this.#followedOf(destinationId, hookId)
    Object.assign(followed, { definition, loginProblem: problem.slice(0, mostOfProblem) })
    const outcome = { kind: 'login', detail: problem } as const
    count(followed, describeForCustomer(outcome).slice(0, mostCharacters), nowMs)
    fail(followed, nowMs)
  }

  #waits(destinationId: string, dueMs: number): void {
    const next = this.#destinations.get(destinationId)?.next
    if (next === undefined) return
    const atMs = Math.ceil(dueMs / nextStepMs) * nextStepMs
    const place = next.findIndex((one) => one >= atMs)
    if (next[place] === atMs) return
    next.splice(place === -1 ? next.length : place, 0, atMs)
    if (next.length > mostNext) next.pop()
  }

  #followedOf(destinationId: string, hookId: string): Followed {
    let ofDestination = this.#destinations.get(destinationId)
    if (ofDestination === undefined)
      this.#destinations.set(destinationId, (ofDestination = { hooks: new Map(), next: [] }))
    let followed = ofDestination.hooks.get(hookId)
    if (followed === undefined) ofDestination.hooks.set(hookId, (followed = newFollowed()))
    return followed
  }
}

function newFollowed(): Followed {
  return {
    definition: undefined,
    failures: 0,
    sinceMs: 0,
    failedMs: 0,
    succeededMs: 0,
    older: new Map(),
    newer: new Map(),
    newerSinceMs: 0,
    loginProblem: undefined,
  }
}

function fail(followed: Followed, nowMs: number): void {
  if (followed.failures === 0) followed.sinceMs = nowMs
  followed.failures++
  followed.failedMs = nowMs
}

/** Returns true if the outcome shows that the URL works and asks for fewer requests. */
function isThrottled(outcome: Outcome): boolean {
  return outcome.kind === 'answer' && outcome.status === 429
}

/** Returns true if the hook is still what it was when it failed. */
function isSame({ definition }: Followed, present: DestinationDefinition | undefined, id: string): boolean {
  if (present === undefined) return false
  if (definition === undefined || definition === present) return true
  const content = hookContentsOf(present).get(id)
  return content !== undefined && content === hookContentsOf(definition).get(id)
}

function fails({ failures, failedMs }: Followed, openMs: number, nowMs: number): boolean {
  if (failures >= leastFailures) return true
  return openMs > 0 && (failures > 0 || nowMs - failedMs < steadyMs)
}

function isForgotten({ failures, failedMs }: Followed, openMs: number, nowMs: number): boolean {
  // A hook that fails now and then is followed for a while, so that its successes are counted too.
  return openMs === 0 && nowMs - failedMs >= (failures === 0 ? 2 * halfMs : quietMs)
}

function wordOf(
  hook: string,
  followed: Followed,
  { openMs, nowMs }: { readonly openMs: number; readonly nowMs: number },
): FailingHookWord {
  turn(followed, nowMs)
  const { failures, sinceMs, failedMs, succeededMs, older, newer, loginProblem } = followed
  const openedMs = openMs > 0 ? nowMs - openMs : Infinity
  const answers = new Map(older)
  for (const [what, many] of newer) answers.set(what, (answers.get(what) ?? 0) + many)
  return {
    hook,
    sinceMs: Math.round(Math.min(failures >= leastFailures ? sinceMs : Infinity, openedMs)),
    isOpen: openMs > 0,
    answers: Object.fromEntries(answers),
    failedMs,
    ...(succeededMs > 0 && { succeededMs }),
    ...(loginProblem !== undefined && { loginProblem }),
  }
}

function count(followed: Followed, what: string, nowMs: number): void {
  turn(followed, nowMs)
  const { newer } = followed
  const kind = newer.has(what) || newer.size < mostKinds ? what : 'other'
  newer.set(kind, (newer.get(kind) ?? 0) + 1)
}

/** Begins a new half, if it is time. */
function turn(followed: Followed, nowMs: number): void {
  const lastedMs = nowMs - followed.newerSinceMs
  if (lastedMs < halfMs) return
  followed.older = lastedMs < 2 * halfMs ? followed.newer : new Map()
  followed.newer = new Map()
  followed.newerSinceMs = nowMs
}

function nextOf(next: number[], nowMs: number): number | undefined {
  while (next[0] !== undefined && next[0] < nowMs) next.shift()
  return next[0]
}

function keyOf(destinationId: string, hookId: string): string {
  return JSON.stringify([destinationId, hookId])
}
