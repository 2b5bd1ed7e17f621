import type { TryClass } from '../delivery/lanes/breaker.ts'
import type { Outcome } from '../delivery/outcomes/outcome.ts'
import { notBefore } from '../delivery/outcomes/retry-after.ts'
import type { Verdict } from '../delivery/outcomes/verdict.ts'
import type { RetryState } from '../retry/retry-state.ts'
import { type Ladder, lastTryAt, nextStep, startClock } from '../retry/ladder.ts'

/**
 * The result of one hook in an attempt. `mayHaveArrived`: true if part of the request was written on a
 * connection that brought no answer.
 */
export type HookResult = { hookId: string; outcome: Outcome; verdict: Verdict; mayHaveArrived: boolean }

/** The decision about a delivery after an attempt. */
export type Decision =
  | { kind: 'delivered' }
  | { kind: 'wait'; waitMs: number; next: Progress }
  | { kind: 'dead'; reason: 'failed_for_good' | 'expired'; next: Progress }

/** The fields of a delivery that a decision after an attempt changes. */
export type Progress = Pick<RetryState, 'nextRung' | 'expiresAtMs' | 'failedHooks' | 'notBeforeMs'>

export type AttemptReport = {
  ladder: Ladder
  progress: Progress
  /** All hooks of the destination, including the hooks that this attempt left out. */
  hookIds: readonly string[]
  results: readonly HookResult[]
  /**
   * The hooks that count as failed for every message. A delivery doesn't note them, because they may come
   * back.
   */
  goneHooks?: readonly string[]
  startedMs: number
  nowMs: number
}

/**
 * Decides what happens to a delivery after an attempt. If any hook has accepted the message, the delivery is
 * settled. A hook whose verdict is `final` is left out from now on. If no hook remains, or if no rung of the
 * ladder ends before the delivery expires, the delivery becomes a dead letter.
 */
export function decide(report: AttemptReport): Decision {
  const { ladder, progress, results, goneHooks = none, startedMs, nowMs } = report
  if (results.some(({ verdict }) => verdict.kind === 'delivered')) return { kind: 'delivered' }
  const expiresAtMs = startClock(ladder, progress.expiresAtMs, startedMs)
  const failedHooks = [...progress.failedHooks]
  const notBeforeMs = new Map(progress.notBeforeMs)
  const latestMs = lastTryAt(ladder, expiresAtMs - ladder.limitMs)
  for (const { hookId, verdict } of results) {
    notBeforeMs.delete(hookId)
    if (goneHooks.includes(hookId)) continue
    if (verdict.kind === 'final') failedHooks.push(hookId)
    else if (verdict.kind === 'retry' && verdict.afterMs > 0) {
      notBeforeMs.set(hookId, notBefore(nowMs, verdict.afterMs, latestMs))
    }
  }
  const next: Progress = { nextRung: progress.nextRung, expiresAtMs, failedHooks, notBeforeMs }
  const remaining = report.hookIds.filter(
    (hookId) => !failedHooks.includes(hookId) && !goneHooks.includes(hookId),
  )
  if (remaining.length === 0) return { kind: 'dead', reason: 'failed_for_good', next }
  return waitOn(ladder, next, remaining, nowMs)
}

/**
 * Returns the next wait of a delivery, or `dead` if no wait ends before the delivery expires. `hookIds`: the
 * hooks that are still to be tried. The list must not be empty.
 */
export function waitOn(
  ladder: Ladder,
  progress: Progress,
  hookIds: readonly string[],
  nowMs: number,
): Exclude<Decision, { kind: 'delivered' }> {
  const { nextRung, expiresAtMs, failedHooks, notBeforeMs } = progress
  const earliestMs =
    notBeforeMs.size === 0 ? 0 : Math.min(...hookIds.map((hookId) => notBeforeMs.get(hookId) ?? 0))
  const step = nextStep(ladder, { rung: nextRung, nowMs, expiresAtMs, notBeforeMs: earliestMs })
  if (step.kind === 'expired') return { kind: 'dead', reason: 'expired', next: progress }
  const next: Progress = { nextRung: step.rung + 1, expiresAtMs, failedHooks, notBeforeMs }
  return { kind: 'wait', waitMs: step.waitMs, next }
}

/** The fields of a delivery that `waitForTurn` and `tryClassOf` need. */
export type TurnProgress = Progress & { readonly waits: number; readonly attempts: number }

/**
 * Returns the next wait, like `waitOn`, for a delivery whose turn for a try didn't come. The wait is as long
 * as a rung, but `nextRung` stays the same.
 */
export function waitForTurn(
  ladder: Ladder,
  progress: TurnProgress,
  hookIds: readonly string[],
  nowMs: number,
): { kind: 'wait'; waitMs: number; waits: number } | { kind: 'expired' } {
  const { nextRung, waits, expiresAtMs, failedHooks, notBeforeMs } = progress
  const rung = nextRung + waits
  const step = waitOn(ladder, { nextRung: rung, expiresAtMs, failedHooks, notBeforeMs }, hookIds, nowMs)
  if (step.kind === 'dead') return { kind: 'expired' }
  return { kind: 'wait', waitMs: step.waitMs, waits: step.next.nextRung - nextRung }
}

/**
 * The number of tries that every message gets, even if its hooks fail all the time: one at the start and one
 * at the end.
 */
const owedTries = 2

/**
 * Returns the class of the try that a delivery would make now. If `expiresAtMs` is 0, the delivery's clock
 * isn't running, so the try counts as the first one. `nowMs` is the latest time at which the turn for the try
 * can come, in epoch milliseconds.
 */
export function tryClassOf(
  ladder: Ladder,
  progress: TurnProgress,
  hookIds: readonly string[],
  nowMs: number,
): TryClass {
  if (progress.expiresAtMs === 0) return 'first'
  const isAtEnd = waitForTurn(ladder, progress, hookIds, nowMs).kind === 'expired'
  if (progress.attempts === 0) return isAtEnd ? 'only' : 'first'
  if (progress.attempts >= owedTries) return 'again'
  return isAtEnd ? 'last' : 'between'
}

/**
 * Returns two lists of hooks. `remaining` has all hooks that may be tried now or later. `due` has only those
 * that may be tried now. It leaves out hooks that have asked for a wait that isn't over.
 */
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

const none: readonly string[] = []
