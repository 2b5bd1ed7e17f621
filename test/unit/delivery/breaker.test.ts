import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Breaker, type BreakerOptions } from '../../../src/delivery/breaker.ts'

const options: BreakerOptions = {
  failureShare: 0.5,
  minResults: 10,
  windowMs: 10_000,
  openMs: 5_000,
  maxOpenMs: 20_000,
}

/** Runs one request through the breaker. */
function run(breaker: Breaker, hasFailed: boolean, nowMs: number): void {
  breaker.ended(breaker.begun(nowMs), hasFailed, nowMs)
}

function opened(atMs = 0): Breaker {
  const breaker = new Breaker(options)
  for (let i = 0; i < 10; i++) run(breaker, true, atMs)
  return breaker
}

describe('a breaker', () => {
  test('opens when the share of failures in the window is reached, and not on a few results', () => {
    const breaker = new Breaker(options)
    for (let i = 0; i < 9; i++) run(breaker, true, 0)
    expect(breaker.allows(0)).toBe(true)
    run(breaker, false, 0)
    expect(breaker.allows(0)).toBe(true)
    run(breaker, true, 0)
    expect(breaker.allows(0)).toBe(false)
    expect(breaker.state(0)).toBe('open')
  })

  test('forgets what is older than its window', () => {
    const breaker = new Breaker(options)
    for (let i = 0; i < 9; i++) run(breaker, true, 0)
    run(breaker, true, 10_001)
    expect(breaker.state(10_001)).toBe('closed')
  })

  test('lets one probe through once its time is over, and no second one beside it', () => {
    const breaker = opened()
    expect(breaker.allows(4_999)).toBe(false)
    expect(breaker.allows(5_000)).toBe(true)
    breaker.begun(5_000)
    expect(breaker.allows(5_000)).toBe(false)
  })

  test('after good probes it lets 2, 4 and 8 through, then all', () => {
    const breaker = opened()
    const limits: number[] = []
    while (breaker.state(5_000) !== 'closed') {
      const eras: number[] = []
      while (breaker.allows(5_000)) eras.push(breaker.begun(5_000))
      limits.push(eras.length)
      // One success raises the limit; the others come back while the next are out.
      for (const era of eras.slice(0, 1)) breaker.ended(era, false, 5_000)
      expect(limits.length).toBeLessThan(20)
    }
    expect(limits[0]).toBe(1)
    expect(breaker.allows(5_000)).toBe(true)
  })

  test('stays open twice as long after each failed probe, up to its limit', () => {
    const breaker = opened()
    let atMs = 5_000
    for (const openMs of [10_000, 20_000, 20_000]) {
      run(breaker, true, atMs)
      expect(breaker.allows(atMs + openMs - 1)).toBe(false)
      atMs += openMs
      expect(breaker.allows(atMs)).toBe(true)
    }
  })

  test('the late results of requests that were begun before it opened change nothing', () => {
    const breaker = new Breaker(options)
    const early = Array.from({ length: 30 }, () => breaker.begun(0))
    for (const era of early.slice(0, 10)) breaker.ended(era, true, 0)
    expect(breaker.state(5_000)).toBe('half-open')
    for (const era of early.slice(10)) breaker.ended(era, true, 5_000)
    expect(breaker.allows(5_000)).toBe(true)
  })

  test('a pause that the hook asked for is kept, closed or not', () => {
    const breaker = new Breaker(options)
    breaker.hold(1_000)
    expect(breaker.allows(999)).toBe(false)
    expect(breaker.state(999)).toBe('closed')
    expect(breaker.allows(1_000)).toBe(true)
  })

  test('for any history: half-open never has more than eight in flight, and a hook that works is let through in the end', () => {
    const steps = fc.array(
      fc.record({ waitMs: fc.integer({ min: 0, max: 8_000 }), fails: fc.boolean(), delays: fc.boolean() }),
      { maxLength: 300 },
    )
    fc.assert(
      fc.property(steps, (history) => {
        const breaker = new Breaker(options)
        let nowMs = 0
        let probes: number[] = []
        for (const { waitMs, fails, delays } of history) {
          nowMs += waitMs
          const state = breaker.state(nowMs)
          if (state !== 'half-open') probes = []
          if (!breaker.allows(nowMs)) continue
          const era = breaker.begun(nowMs)
          if (state === 'half-open') probes.push(era)
          expect(probes.length).toBeLessThanOrEqual(8)
          if (delays && state === 'half-open') continue
          breaker.ended(era, fails, nowMs)
          probes = probes.filter((probe) => probe !== era)
        }
        // Let what is out come back, then only successes.
        for (const era of probes) breaker.ended(era, false, nowMs)
        for (let i = 0; i < 20; i++) {
          nowMs += options.maxOpenMs
          if (breaker.allows(nowMs)) run(breaker, false, nowMs)
        }
        expect(breaker.state(nowMs)).toBe('closed')
      }),
      { numRuns: 1_000 },
    )
  })
})
