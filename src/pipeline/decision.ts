import type { TryClass } from '../delivery/breaker.ts'
import type { Outcome } from '../delivery/outcome.ts'
import { notBefore } from '../delivery/retry-after.ts'
import type { Verdict } from '../delivery/verdict.ts'
import type { Carried } from '../retry/carried.ts'
import { type Ladder, lastTryAt, nextStep, startClock } from '../retry/ladder.ts'

/** What one hook made of one attempt. `mayHaveArrived`: some of a request was written that has no answer. */
export type HookResult = { hookId: string; outcome: Outcome; verdict: Verdict; mayHaveArrived: boolean }

/** Where a delivery goes after an attempt. */
export type Decision =
  | { kind: 'delivered' }
  | { kind: 'wait'; waitMs: number; next: Progress }
  | { kind: 'dead'; reason: 'failed_for_good' | 'expired'; next: Progress }

/** What an attempt changes in what the delivery carries. */
export type Progress = Pick<Carried, 'nextRung' | 'expiresAtMs' | 'failedHooks' | 'notBeforeMs'>

export type AttemptReport = {
  ladder: Ladder
  carried: Progress
  /** All hooks of the destination, those left out of this attempt too. */
  hookIds: readonly string[]
  results: readonly HookResult[]
  startedMs: number
  nowMs: number
}

/**
 * Decides what follows from an attempt. Any hook's success settles the delivery; a hook that failed for
 * good is left out from now on; when none is left, or no rung of the ladder ends in time, it is dead.
 */
export function decide(report: AttemptReport): Decision {
  const { ladder, carried, results, startedMs, nowMs } = report
  if (results.some(({ verdict }) => verdict.kind === 'delivered')) return { kind: 'delivered' }
  const expiresAtMs = startClock(ladder, carried.expiresAtMs, startedMs)
  const failedHooks = [...carried.failedHooks]
  const notBeforeMs = new Map(carried.notBeforeMs)
  const latestMs = lastTryAt(ladder, expiresAtMs - ladder.limitMs)
  for (const { hookId, verdict } of results) {
    notBeforeMs.delete(hookId)
    if (verdict.kind === 'final') failedHooks.push(hookId)
    else if (verdict.kind === 'retry' && verdict.afterMs > 0) {
      notBeforeMs.set(hookId, notBefore(nowMs, verdict.afterMs, latestMs))
    }
  }
  const next: Progress = { nextRung: carried.nextRung, expiresAtMs, failedHooks, notBeforeMs }
  const remaining = report.hookIds.filter((hookId) => !failedHooks.includes(hookId))
  if (remaining.length === 0) return { kind: 'dead', reason: 'failed_for_good', next }
  return waitOn(ladder, next, remaining, nowMs)
}

/**
 * The next rung for hooks that are still to be tried (at least one); nothing was attempted since `carried`
 * was written.
 */
export function waitOn(
  ladder: Ladder,
  carried: Progress,
  hookIds: readonly string[],
  nowMs: number,
): Exclude<Decision, { kind: 'delivered' }> {
  const { nextRung, expiresAtMs, failedHooks, notBeforeMs } = carried
  const earliestMs =
    notBeforeMs.size === 0 ? 0 : Math.min(...hookIds.map((hookId) => notBeforeMs.get(hookId) ?? 0))
  const step = nextStep(ladder, { rung: nextRung, nowMs, expiresAtMs, notBeforeMs: earliestMs })
  if (step.kind === 'expired') return { kind: 'dead', reason: 'expired', next: carried }
  const next: Progress = { nextRung: step.rung + 1, expiresAtMs, failedHooks, notBeforeMs }
  return { kind: 'wait', waitMs: step.waitMs, next }
}

/** What a delivery carries that may not have had its turn. */
export type TurnProgress = Progress & { readonly waits: number; readonly attempts: number }

/**
 * As `waitOn`, for a delivery that had no turn: time goes on by the steps of the ladder, and its rung stays.
 */
export function waitForTurn(
  ladder: Ladder,
  carried: TurnProgress,
  hookIds: readonly string[],
  nowMs: number,
): { kind: 'wait'; waitMs: number; waits: number } | { kind: 'expired' } {
  const { nextRung, waits, expiresAtMs, failedHooks, notBeforeMs } = carried
  const rung = nextRung + waits
  const step = waitOn(ladder, { nextRung: rung, expiresAtMs, failedHooks, notBeforeMs }, hookIds, nowMs)
  if (step.kind === 'dead') return { kind: 'expired' }
  return { kind: 'wait', waitMs: step.waitMs, waits: step.next.nextRung - nextRung }
}

/** Tries that every message has, whatever its hooks answer: one at the start, one at the end. */
const owedTries = 2

/**
 * Which of its tries a delivery would have now. The four hours of one without a time to expire have not
 * begun. `nowMs`: when it will have had its turn at the latest, in epoch milliseconds.
 */
export function tryClassOf(
  ladder: Ladder,
  carried: TurnProgress,
  hookIds: readonly string[],
  nowMs: number,
): TryClass {
  if (carried.expiresAtMs === 0) return 'first'
  const isAtEnd = waitForTurn(ladder, carried, hookIds, nowMs).kind === 'expired'
  if (carried.attempts === 0) return isAtEnd ? 'only' : 'first'
  if (carried.attempts >= owedTries) return 'again'
  return isAtEnd ? 'last' : 'between'
}

/** The hooks an attempt goes to now: not failed for good, and not asking for a later time. */
export function dueHooks<H extends { readonly id: string }>(
  hooks: readonly H[],
  { failedHooks, notBeforeMs }: Pick<Progress, 'failedHooks' | 'notBeforeMs'>,
  nowMs: number,
): { due: readonly H[]; remaining: readonly H[] } {
  if (failedHooks.length === 0 && notBeforeMs.size === 0) return { due: hooks, remaining: hooks }
  const remaining = hooks.filter(({ id }) => !failedHooks.includes(id))
  return { due: remaining.filter(({ id }) => (notBeforeMs.get(id) ?? 0) <= nowMs), remaining }
}

export function idsOf(hooks: readonly { readonly id: string }[]): readonly string[] {
  return hooks.map(({ id }) => id)
}
