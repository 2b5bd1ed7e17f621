import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Ladder,
  lastTryAt,
  nextParkingStep,
  nextStep,
  tiersOf,
  waitOf,
} from '../../../src/retry/ladder.ts'

const minute = 60_000
const hour = 60 * minute
const runs = { numRuns: 1_000 }

const standard: Ladder = {
  waitsMs: [minute, 10 * minute, hour, hour, hour],
  thenMs: 10 * minute,
  limitMs: 4 * hour,
}

/**
 * Returns the times at which a delivery that always fails is tried, in minutes after the first attempt. Each
 * try is `lateMs` milliseconds late.
 */
function tries(ladder: Ladder, lateMs = 0): number[] {
  const expiresAtMs = ladder.limitMs
  const times = [0]
  for (let rung = 0, nowMs = 0; ;) {
    const step = nextStep(ladder, { rung, nowMs, expiresAtMs })
    if (step.kind === 'expired') return times.map((ms) => ms / minute)
    rung = step.rung + 1
    nowMs += step.waitMs + lateMs
    times.push(nowMs)
  }
}

describe('the default ladder', () => {
  test('tries at 1 m, 11 m, 71 m, 131 m, 191 m and then every 10 minutes, the last 3 h 51 min after the first', () => {
    expect(tries(standard)).toEqual([0, 1, 11, 71, 131, 191, 201, 211, 221, 231])
    expect(lastTryAt(standard, 0)).toBe(231 * minute)
  })

  test('has three tiers', () => {
    expect(tiersOf(standard)).toEqual([minute, 10 * minute, hour])
  })

  test('when we are late, a long rung that no longer fits gives way to a shorter one', () => {
    const step = nextStep(standard, { rung: 4, nowMs: 3 * hour + minute, expiresAtMs: 4 * hour })
    expect(step).toEqual({ kind: 'wait', rung: 5, waitMs: 10 * minute })
  })

  test('a Retry-After of 30 minutes skips to the rung that reaches it', () => {
    const step = nextStep(standard, { rung: 0, nowMs: 0, expiresAtMs: 4 * hour, notBeforeMs: 30 * minute })
    expect(step).toEqual({ kind: 'wait', rung: 2, waitMs: hour })
  })

  test('a Retry-After that no rung reaches takes the longest, and hops again from there', () => {
    const step = nextStep(standard, { rung: 0, nowMs: 0, expiresAtMs: 4 * hour, notBeforeMs: 2 * hour })
    expect(step).toEqual({ kind: 'wait', rung: 2, waitMs: hour })
  })

  test('what only waits goes up the ladder, and then round in the longest wait', () => {
    const waits: number[] = []
    for (let rung = 0; waits.length < 8; rung++) waits.push(nextParkingStep(standard, rung).waitMs / minute)
    expect(waits).toEqual([1, 10, 60, 60, 60, 60, 60, 60])
  })
})

const ladders = fc.record({
  waitsMs: fc.array(fc.integer({ min: 1_000, max: 2 * hour }), { minLength: 1, maxLength: 8 }),
  thenMs: fc.integer({ min: minute, max: 2 * hour }),
  limitMs: fc.integer({ min: minute, max: 12 * hour }),
})

describe('any ladder', () => {
  test('no try is due after the limit, rungs only go up, and it ends', () => {
    fc.assert(
      fc.property(ladders, fc.integer({ min: 0, max: 30 * minute }), (ladder, lateMs) => {
        let rung = 0
        let nowMs = 0
        for (let steps = 0; ; steps++) {
          expect(steps).toBeLessThanOrEqual(ladder.waitsMs.length + ladder.limitMs / ladder.thenMs + 1)
          const step = nextStep(ladder, { rung, nowMs, expiresAtMs: ladder.limitMs })
          if (step.kind === 'expired') break
          expect(nowMs + step.waitMs).toBeLessThanOrEqual(ladder.limitMs)
          expect(step.rung).toBeGreaterThanOrEqual(rung)
          expect(step.waitMs).toBe(waitOf(ladder, step.rung))
          expect(tiersOf(ladder)).toContain(step.waitMs)
          rung = step.rung + 1
          nowMs += step.waitMs + lateMs
        }
      }),
      runs,
    )
  })

  test('it gives up only when not even the shortest wait that is left fits', () => {
    fc.assert(
      fc.property(
        ladders,
        fc.nat({ max: 10 }),
        fc.integer({ min: 0, max: 12 * hour }),
        (ladder, rung, nowMs) => {
          const step = nextStep(ladder, { rung, nowMs, expiresAtMs: ladder.limitMs })
          const left = [...ladder.waitsMs.slice(rung), ladder.thenMs]
          const fits = left.some((waitMs) => nowMs + waitMs <= ladder.limitMs)
          expect(step.kind).toBe(fits ? 'wait' : 'expired')
        },
      ),
      runs,
    )
  })

  test('on time and without a Retry-After, each rung is taken in turn until the first that does not fit', () => {
    fc.assert(
      fc.property(ladders, (ladder) => {
        const planned: number[] = [0]
        let atMs = 0
        for (const waitMs of ladder.waitsMs) {
          if (atMs + waitMs > ladder.limitMs) break
          planned.push((atMs += waitMs) / minute)
        }
        expect(tries(ladder).slice(0, planned.length)).toEqual(planned)
      }),
      runs,
    )
  })

  test('a Retry-After, clamped to the last try, is kept and never costs the last try', () => {
    fc.assert(
      fc.property(ladders, fc.integer({ min: 1, max: 24 * hour }), (ladder, afterMs) => {
        const lastMs = lastTryAt(ladder, 0)
        const notBeforeMs = Math.min(afterMs, lastMs)
        let rung = 0
        let nowMs = 0
        // The delivery goes from rung to rung without an attempt until the time has come. If no rung is left,
        // it is tried anyway.
        for (;;) {
          const step = nextStep(ladder, { rung, nowMs, expiresAtMs: ladder.limitMs, notBeforeMs })
          if (step.kind === 'expired') break
          nowMs += step.waitMs
          rung = step.rung + 1
          if (nowMs >= notBeforeMs) break
        }
        if (lastMs > 0) expect(nowMs).toBeGreaterThan(0)
        expect(nowMs).toBeLessThanOrEqual(ladder.limitMs)
      }),
      runs,
    )
  })
})
