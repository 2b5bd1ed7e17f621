import { describe, expect, test } from 'vitest'
import { judge } from '../../../src/delivery/outcomes/verdict.ts'
import type { Outcome } from '../../../src/delivery/outcomes/outcome.ts'
import { decide, dueHooks, type Progress } from '../../../src/pipeline/decision.ts'
import type { Ladder } from '../../../src/retry/ladder.ts'

const minute = 60_000
const hour = 60 * minute
const ladder: Ladder = {
  waitsMs: [minute, 10 * minute, hour, hour, hour],
  thenMs: 10 * minute,
  limitMs: 4 * hour,
}
const fresh: Progress = { nextRung: 0, expiresAtMs: 0, failedHooks: [], notBeforeMs: new Map() }
const t0 = 1_700_000_000_000

function decideOn(
  outcomes: Record<string, Outcome>,
  { progress = fresh, hookIds = Object.keys(outcomes), nowMs = t0 } = {},
) {
  const results = Object.entries(outcomes).map(([hookId, outcome]) => ({
    hookId,
    outcome,
    verdict: judge(outcome),
    mayHaveArrived: false,
  }))
  return decide({ ladder, progress, hookIds, results, startedMs: t0, nowMs })
}

const status = (code: number, retryAfterMs?: number): Outcome =>
  retryAfterMs === undefined
    ? { kind: 'answer', status: code }
    : { kind: 'answer', status: code, retryAfterMs }

describe('what follows from an attempt', () => {
  test('the success of any hook settles the delivery', () => {
    expect(decideOn({ a: status(500), b: status(204), c: status(404) })).toEqual({ kind: 'delivered' })
  })

  test('a hook that failed for good is left out of later attempts, the others are tried again', () => {
    const decision = decideOn({ a: status(404), b: status(500) })
    expect(decision).toMatchObject({
      kind: 'wait',
      waitMs: minute,
      next: { nextRung: 1, failedHooks: ['a'] },
    })
  })

  test('when every hook has failed for good, the delivery is dead', () => {
    const progress = { ...fresh, failedHooks: ['a'], expiresAtMs: t0 + hour }
    expect(decideOn({ b: status(410) }, { progress, hookIds: ['a', 'b'] })).toMatchObject({
      kind: 'dead',
      reason: 'failed_for_good',
    })
  })

  test('the four hours begin with the first attempt', () => {
    expect(decideOn({ a: status(500) })).toMatchObject({ next: { expiresAtMs: t0 + 4 * hour } })
    const progress = { ...fresh, expiresAtMs: t0 + 1 }
    expect(decideOn({ a: status(500) }, { progress })).toMatchObject({ kind: 'dead', reason: 'expired' })
  })

  test('a Retry-After holds for the hook that gave it, and no longer than to the last try', () => {
    const decision = decideOn({ a: status(429, 24 * hour), b: status(500) })
    expect(decision).toMatchObject({ kind: 'wait', waitMs: minute })
    if (decision.kind !== 'wait') return
    expect(decision.next.notBeforeMs).toEqual(new Map([['a', t0 + 231 * minute]]))
    const hooks = [{ id: 'a' }, { id: 'b' }]
    expect(dueHooks(hooks, decision.next, t0 + minute).due).toEqual([{ id: 'b' }])
  })

  test('when all hooks asked for a wait, the next rung reaches the first of them', () => {
    expect(decideOn({ a: status(503, 20 * minute), b: status(429, 5 * minute) })).toMatchObject({
      kind: 'wait',
      waitMs: 10 * minute,
    })
  })
})
