import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { TokenBucket } from '../../../src/async/token-bucket.ts'

describe('a token bucket', () => {
  test('gives as many at once as its burst, then at its rate', () => {
    const bucket = new TokenBucket({ perSecond: 10, burst: 3 }, 0)
    expect([bucket.take(0), bucket.take(0), bucket.take(0)]).toEqual([0, 0, 0])
    expect(bucket.take(0)).toBe(100)
    expect(bucket.take(100)).toBe(0)
  })

  test('keeps no more than its burst, however long nothing is taken', () => {
    const bucket = new TokenBucket({ perSecond: 10, burst: 3 }, 0)
    const taken = [1, 2, 3, 4].map(() => bucket.take(3_600_000))
    expect(taken).toEqual([0, 0, 0, 100])
  })

  test('takes more than its burst at once, and waits until that is paid off', () => {
    const bucket = new TokenBucket({ perSecond: 10, burst: 10 }, 0)
    expect(bucket.take(0, 100)).toBe(0)
    expect(bucket.take(0, 1)).toBe(9_100)
    expect(bucket.take(9_099, 1)).toBe(1)
    expect(bucket.take(9_100, 1)).toBe(0)
  })

  test('never lets through more than its rate, its burst and one last request', () => {
    const takes = fc.array(
      fc.record({ afterMs: fc.integer({ min: 0, max: 500 }), count: fc.integer({ min: 1, max: 50 }) }),
      { maxLength: 100 },
    )
    fc.assert(
      fc.property(takes, fc.integer({ min: 1, max: 100 }), (requests, perSecond) => {
        const bucket = new TokenBucket({ perSecond, burst: perSecond }, 0)
        let nowMs = 0
        let taken = 0
        for (const { afterMs, count } of requests) {
          nowMs += afterMs
          const isOverdrawn = taken > perSecond + (perSecond * nowMs) / 1_000
          if (bucket.take(nowMs, count) > 0) continue
          expect(isOverdrawn).toBe(false)
          taken += count
        }
      }),
      { numRuns: 1_000 },
    )
  })

  test('says when it would give: not before, and then it does', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000 }),
        fc.integer({ min: 1, max: 5_000 }),
        (perSecond, first) => {
          const bucket = new TokenBucket({ perSecond, burst: perSecond }, 0)
          bucket.take(0, first)
          const waitMs = bucket.take(0)
          const waits = waitMs > 0
          expect(waits ? bucket.take(waitMs - 1.001) : 1).toBeGreaterThan(0)
          // The extra millisecond covers what was rounded.
          expect(waits ? bucket.take(waitMs + 1) : 0).toBe(0)
        },
      ),
      { numRuns: 1_000 },
    )
  })
})
