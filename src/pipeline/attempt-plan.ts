import type { TryClass } from '../delivery/breaker.ts'
import type { Endpoint, EndpointHook } from '../delivery/endpoint.ts'
import type { Ladder } from '../retry/ladder.ts'
import { dueHooks, idsOf, tryClassOf, waitOn } from './decision.ts'
import type { Delivery } from './delivery.ts'

type Hooks = Endpoint['hooks']

/** The hooks that an attempt sends requests to. */
export type AttemptPlan = {
  /** The hooks, in the order in which they have their turn. */
  readonly hooks: Hooks
  /** The members of `hooks` that aren't well: their breaker is open, or they have asked for a pause. */
  readonly sick: Hooks
  readonly tryClass: TryClass
}

export type PlanOptions = {
  readonly ladder: Ladder
  /** The longest time, in milliseconds, that a request to a hook that isn't well waits for its turn. */
  readonly sickWaitMs: number
}

const noHooks: Hooks = []

/**
 * Plans an attempt that begins at `startedMs` (epoch milliseconds). If no hook may be asked now, returns the
 * hooks to wait for. That list is empty if all hooks have failed for good.
 */
export function planAttempt(
  delivery: Delivery,
  { definition, hooks: all }: Endpoint,
  options: PlanOptions,
  startedMs: number,
): AttemptPlan | { readonly waitFor: Hooks } {
  const { due, remaining } = dueHooks(all, delivery, startedMs)
  const hooks = due.length > 0 ? due : hooksAtLastTry(delivery, remaining, options.ladder, startedMs)
  if (hooks.length === 0) return { waitFor: remaining }
  const nowMs = performance.now()
  const isWell = ({ breaker }: EndpointHook): boolean => breaker.isWell(nowMs)
  if (hooks.every(isWell)) return { hooks, sick: noHooks, tryClass: 'first' }
  const sick = hooks.filter((hook) => !isWell(hook))
  const tryClass = due.length === 0 ? 'last' : tryClassFor(delivery, hooks, options, startedMs)
  const ordered = definition.strategy === 'failover' ? failoverOrder(hooks, sick, nowMs) : hooks
  return { hooks: ordered, sick, tryClass }
}

/**
 * Returns true if all remaining hooks have breakers that would skip this try. Never returns true for the
 * first and the last try.
 */
export function hasNoChance(
  delivery: Delivery,
  { hooks }: Endpoint,
  options: PlanOptions,
  startedMs: number,
): boolean {
  if (delivery.attempts === 0) return false
  const nowMs = performance.now()
  const isHopeless = hooks.every(
    ({ id, breaker }) => delivery.failedHooks.includes(id) || breaker.advise('between', nowMs) === 'skip',
  )
  return isHopeless && tryClassFor(delivery, hooks, options, startedMs) !== 'last'
}

/**
 * Returns how long an attempt has to wait, in milliseconds, because all of its hooks work and have asked for
 * a pause. The wait ends with the shortest pause. Returns `undefined` if the attempt must not wait, as for a
 * last or only try.
 */
export function askedPauseMs({ hooks, sick, tryClass }: AttemptPlan): number | undefined {
  if (sick.length < hooks.length || tryClass === 'last' || tryClass === 'only') return undefined
  if (sick.some(({ breaker }) => breaker.state === 'open')) return undefined
  return Math.min(...sick.map(({ breaker }) => breaker.heldUntilMs)) - performance.now()
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
 * Returns the remaining hooks if they asked to be left alone until after the last possible try. They are
 * tried now, because otherwise they would never be tried again.
 */
function hooksAtLastTry(delivery: Delivery, remaining: Hooks, ladder: Ladder, startedMs: number): Hooks {
  if (remaining.length === 0) return remaining
  const step = waitOn(ladder, delivery, idsOf(remaining), startedMs)
  return step.kind === 'dead' ? remaining : noHooks
}

/** Moves hooks that aren't well behind the others. A hook that is due for a probe keeps its place. */
function failoverOrder(hooks: Hooks, sick: Hooks, nowMs: number): Hooks {
  const isLater = (hook: EndpointHook): boolean =>
    sick.includes(hook) && hook.breaker.advise('between', nowMs) !== 'go'
  return [...hooks.filter((hook) => !isLater(hook)), ...hooks.filter(isLater)]
}
