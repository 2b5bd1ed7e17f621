import type { TryClass } from '../delivery/lanes/breaker.ts'
import type { Endpoint, EndpointHook } from '../delivery/endpoint.ts'
import type { Ladder } from '../retry/ladder.ts'
import { dueHooks, idsOf, tryClassOf, waitOn } from './decision.ts'
import type { Delivery } from './delivery.ts'

type Hooks = Endpoint['hooks']

/** The hooks to which an attempt sends requests. */
export type AttemptPlan = {
  /** The hooks in the order in which they are asked. */
  readonly hooks: Hooks
  /**
   * Those of `hooks` that get their request through the bulkhead: they have an open breaker, have asked for a
   * pause, or have no room.
   */
  readonly sick: Hooks
  /** The hooks that would be asked if there were a token to log in with. */
  readonly withoutLogin: Hooks
  readonly tryClass: TryClass
}

/**
 * What a delivery waits for that can't be attempted now. `waitFor`: hooks that have asked for a wait; without
 * any, no hook is to be tried again. `login`: tokens. See `LoginState`.
 */
export type PlannedWait = { readonly waitFor: Hooks } | { readonly login: 'asking' | 'failing' }

export type PlanOptions = {
  readonly ladder: Ladder
  /** The longest time that a request to a hook of `sick` waits for its turn, in milliseconds. */
  readonly sickWaitMs: number
}

const noHooks: Hooks = []

/**
 * Plans an attempt that begins at `startedMs` (epoch milliseconds). If no hook may be asked now, returns what
 * the delivery must wait for.
 */
export function planAttempt(
  delivery: Delivery,
  endpoint: Endpoint,
  options: PlanOptions,
  startedMs: number,
): AttemptPlan | PlannedWait {
  const { definition, hooks: all } = endpoint
  const { due, remaining } = dueHooks(all, delivery, startedMs)
  const planned = due.length > 0 ? due : hooksAtLastTry(delivery, remaining, options.ladder, startedMs)
  if (planned.length === 0) return { waitFor: remaining }
  const withoutLogin = endpoint.hasLogins
    ? planned.filter(({ login }) => login?.state() === 'failing')
    : noHooks
  const hooks = withoutLogin.length === 0 ? planned : planned.filter((hook) => !withoutLogin.includes(hook))
  if (hooks.length === 0) return { login: 'failing' }
  // A token comes within a request's deadline, or it fails.
  if (endpoint.hasLogins && hooks.some(({ login }) => login?.state() === 'asking')) return { login: 'asking' }
  const nowMs = performance.now()
  const isWell = ({ breaker }: EndpointHook): boolean => breaker.isWell(nowMs)
  if (hooks.every(isWell)) return { hooks, sick: noHooks, withoutLogin, tryClass: 'first' }
  const sick = hooks.filter((hook) => !isWell(hook))
  const tryClass = due.length === 0 ? 'last' : tryClassFor(delivery, hooks, options, startedMs)
  const ordered = definition.strategy === 'failover' ? failoverOrder(hooks, sick, nowMs) : hooks
  return { hooks: ordered, sick, withoutLogin, tryClass }
}

/** Returns for how long none of a destination's hooks could be logged in to, in milliseconds. */
export function failingForMs({ hooks }: Endpoint): number {
  return Math.min(...hooks.map(({ login }) => login?.failingForMs ?? 0))
}

/**
 * Returns true if the breakers of all hooks that may still be tried would skip this try. For the first and
 * the last try, always returns false.
 */
export function hasNoChance(
  delivery: Delivery,
  { hooks }: Endpoint,
  options: PlanOptions,
  startedMs: number,
): boolean {
  if (delivery.attempts === 0) return false
  const { remaining } = dueHooks(hooks, delivery, startedMs)
  // If no hook may be tried again, the delivery must end now instead of waiting.
  if (remaining.length === 0) return false
  const nowMs = performance.now()
  const isHopeless = remaining.every(({ breaker }) => breaker.advise('between', nowMs) === 'skip')
  if (!isHopeless || tryClassFor(delivery, hooks, options, startedMs) === 'last') return false
  for (const { breaker } of remaining) breaker.skipped(nowMs)
  return true
}

/**
 * Returns how many milliseconds an attempt has to wait. An attempt waits if each of its hooks works but has
 * asked for a pause. It waits until the shortest pause ends. Returns `undefined` if the attempt must not
 * wait, for example because it is the last or only try.
 */
export function askedPauseMs({ hooks, sick, tryClass }: AttemptPlan): number | undefined {
  if (sick.length < hooks.length || tryClass === 'last' || tryClass === 'only') return undefined
  const nowMs = performance.now()
  if (sick.some(({ breaker }) => breaker.state === 'open' || breaker.isWell(nowMs))) return undefined
  return Math.min(...sick.map(({ breaker }) => breaker.heldUntilMs)) - nowMs
}

function tryClassFor(
  delivery: Delivery,
  hooks: Hooks,
  { ladder, sickWaitMs }: PlanOptions,
  startedMs: number,
): TryClass {
  const remaining = hooks.filter(({ id }) => !delivery.failedHooks.includes(id))
  return tryClassOf(ladder, delivery, idsOf(remaining), startedMs + sickWaitMs)
}

/**
 * If the remaining hooks have asked for a wait that ends after the last possible try, returns these hooks,
 * because otherwise they would never be tried again. If not, returns no hooks.
 */
function hooksAtLastTry(delivery: Delivery, remaining: Hooks, ladder: Ladder, startedMs: number): Hooks {
  if (remaining.length === 0) return remaining
  const step = waitOn(ladder, delivery, idsOf(remaining), startedMs)
  return step.kind === 'dead' ? remaining : noHooks
}

/** Moves the hooks of `sick` to the end, except those whose breaker allows a probe now. */
function failoverOrder(hooks: Hooks, sick: Hooks, nowMs: number): Hooks {
  const isLater = (hook: EndpointHook): boolean =>
    sick.includes(hook) && hook.breaker.advise('probe', nowMs) !== 'go'
  return [...hooks.filter((hook) => !isLater(hook)), ...hooks.filter(isLater)]
}
