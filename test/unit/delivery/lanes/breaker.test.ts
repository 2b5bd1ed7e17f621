import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  Breaker,
  type BreakerOptions,
  type HookAnswer,
  type TryClass,
} from '../../../../src/delivery/lanes/breaker.ts'
import { roomy } from '../../../support/roomy-hook.ts'

const options: BreakerOptions = {
  failureShare: 0.5,
  minResults: 10,
  windowMs: 10_000,
  openMs: 5_000,
  maxOpenMs: 20_000,
}

/** Runs one request through the breaker. */
function run(breaker: Breaker, answer: HookAnswer, nowMs: number, tryClass: TryClass = 'first'): void {
  breaker.ended(breaker.begun(nowMs, tryClass), answer, nowMs)
}

function opened(atMs = 0): Breaker {
  const breaker = new Breaker(options, roomy)
  for (let i = 0; i < 10; i++) run(breaker, 'failure', atMs)
  return breaker
}

/**
 * Returns how many tries of the class `between` (neither first nor last) the breaker allows at once. Each of
 * them fails.
 */
function letsGo(breaker: Breaker, nowMs: number): number {
  for (let count = 0; count < 5_000; count++) {
    if (breaker.advise('between', nowMs) !== 'go') return count
    run(breaker, 'failure', nowMs, 'between')
  }
  return 5_000
}

describe('a breaker', () => {
  test('that is told that its hook may work again lets each try go, and opens again by new failures alone', () => {
    const breaker = opened()
    const before = breaker.begun(0, 'first')
    breaker.hold(15_000)
    expect([breaker.isWell(1), breaker.advise('between', 1)]).toEqual([false, 'wait'])
    breaker.forgive()
    expect([breaker.isWell(1), breaker.advise('between', 1)]).toEqual([true, 'go'])
    breaker.ended(before, 'failure', 1)
    for (let i = 0; i < 9; i++) run(breaker, 'failure', 1)
    expect(breaker.state).toBe('closed')
    run(breaker, 'failure', 1)
    expect(breaker.state).toBe('open')
  })

  test('opens when the share of failures in the window is reached, and not on a few results', () => {
    const breaker = new Breaker(options, roomy)
    for (let i = 0; i < 9; i++) run(breaker, 'failure', 0)
    expect(breaker.isWell(0)).toBe(true)
    run(breaker, 'success', 0)
    expect(breaker.isWell(0)).toBe(true)
    run(breaker, 'failure', 0)
    expect(breaker.isWell(0)).toBe(false)
    expect(breaker.state).toBe('open')
  })

  test('tells for how long it has been open, unless nothing was sent for long', () => {
    const quietMs = 3_600_000
    expect(new Breaker(options, roomy).openForMs(1, quietMs)).toBe(0)
    const breaker = opened(1_000)
    expect(breaker.openForMs(61_000, quietMs)).toBe(60_000)
    run(breaker, 'failure', 1_801_000)
    expect(breaker.openForMs(3_601_001, quietMs)).toBe(3_600_001)
    expect(breaker.openForMs(5_401_000, quietMs)).toBe(0)
    for (let i = 0; i < 10; i++) run(breaker, 'success', 5_401_000)
    expect(breaker.openForMs(5_402_000, quietMs)).toBe(0)
  })

  test('forgets what is older than its window', () => {
    const breaker = new Breaker(options, roomy)
    for (let i = 0; i < 9; i++) run(breaker, 'failure', 0)
    run(breaker, 'failure', 10_001)
    expect(breaker.state).toBe('closed')
  })

  test('open, it lets the first and the last try of every message go, and none in between', () => {
    const breaker = opened()
    for (let i = 0; i < 1_000; i++) {
      expect(breaker.advise('first', i)).toBe('go')
      expect(breaker.advise('last', i)).toBe('go')
      expect(breaker.advise('between', i)).toBe('skip')
      run(breaker, 'failure', i)
    }
  })

  test('a hook that was sent nothing for a while is probed, ever more seldom as long as it fails', () => {
    const breaker = opened()
    expect(breaker.advise('between', 4_999)).toBe('skip')
    let atMs = 5_000
    for (const openMs of [10_000, 20_000, 20_000]) {
      expect(breaker.advise('between', atMs)).toBe('go')
      run(breaker, 'failure', atMs, 'between')
      expect(breaker.advise('between', atMs + openMs - 1)).toBe('skip')
      atMs += openMs
    }
  })

  test('a success earns fifty tries in between, and many results without one halve what is left', () => {
    const breaker = opened()
    run(breaker, 'success', 0)
    expect(letsGo(breaker, 0)).toBe(50)
    for (let i = 0; i < 2; i++) run(breaker, 'success', 0)
    for (let i = 0; i < 49; i++) run(breaker, 'failure', 0)
    // The first try that the breaker allows here is the fiftieth failure in a row. It halves the 99 credits
    // that are left.
    expect(letsGo(breaker, 0)).toBe(1 + Math.floor(99 / 2))
  })

  test('a hook that takes one of ten requests earns all tries that a message may have', () => {
    const breaker = opened()
    let spent = 0
    for (let i = 0; i < 10_000; i++) {
      // Of the ten tries of each message, one is the first. For most messages, another one is the last.
      const tryClass = i % 10 < 2 ? 'first' : 'between'
      if (breaker.advise(tryClass, i) !== 'go') continue
      spent++
      run(breaker, spent % 10 === 0 ? 'success' : 'failure', i, tryClass)
    }
    expect(spent).toBeGreaterThan(9_900)
  })

  test('a hook that takes something gets no more at once than its room, and a dead hook all first and last tries', () => {
    let hasRoom = false
    const breaker = new Breaker(options, { ...roomy, hasRoom: () => hasRoom })
    for (let i = 0; i < 10; i++) run(breaker, 'failure', 0)
    expect(breaker.advise('first', 0)).toBe('go')
    run(breaker, 'success', 0)
    for (const tryClass of ['first', 'last', 'only', 'between'] as const)
      expect(breaker.advise(tryClass, 0)).toBe('wait')
    hasRoom = true
    for (const tryClass of ['first', 'last', 'only', 'between'] as const)
      expect(breaker.advise(tryClass, 0)).toBe('go')
    hasRoom = false
    for (let i = 0; i < 50; i++) run(breaker, 'failure', 0)
    for (const tryClass of ['first', 'last', 'only'] as const) expect(breaker.advise(tryClass, 0)).toBe('go')
  })

  test('closes when a run of results fails less often than what opens it', () => {
    const breaker = opened()
    for (let i = 0; i < 10; i++) run(breaker, i < 6 ? 'success' : 'failure', 0)
    expect(breaker.isWell(0)).toBe(true)
  })

  test('the late results of requests that were begun before it opened change nothing', () => {
    const breaker = new Breaker(options, roomy)
    const early = Array.from({ length: 30 }, () => breaker.begun(0, 'first'))
    for (const era of early.slice(0, 10)) breaker.ended(era, 'failure', 0)
    expect(breaker.state).toBe('open')
    for (const era of early.slice(10)) breaker.ended(era, 'success', 0)
    expect(breaker.state).toBe('open')
    expect(breaker.advise('between', 0)).toBe('skip')
  })

  test('a try again that was never sent takes no message its last try', () => {
    const breaker = new Breaker(options, roomy)
    for (let i = 0; i < 60; i++) run(breaker, 'failure', i)
    let probes = 0
    for (let nowMs = 1_000; nowMs < 600_000; nowMs += 1_000) {
      if (breaker.advise('again', nowMs) !== 'go') continue
      probes++
      breaker.withdrawn(breaker.begun(nowMs, 'again'), 'again')
    }
    expect(probes).toBeGreaterThan(5)
    expect(breaker.advise('last', 600_000)).toBe('go')
  })

  test('a probe takes no last try of the next outage: what it took is forgotten when the hook is well', () => {
    const breaker = new Breaker(options, roomy)
    for (let i = 0; i < 60; i++) run(breaker, 'failure', i)
    let nowMs = 60_000
    expect(breaker.advise('again', nowMs)).toBe('go')
    run(breaker, 'failure', nowMs, 'again')
    expect(breaker.advise('last', nowMs)).toBe('skip')
    for (let i = 0; i < 20; i++) run(breaker, 'success', nowMs)
    expect(breaker.state).toBe('closed')

    nowMs += 3_600_000
    for (let i = 0; i < 60; i++) run(breaker, 'failure', nowMs)
    expect(breaker.state).toBe('open')
    expect(breaker.advise('last', nowMs)).toBe('go')
  })

  test('a pause that the hook asked for is kept, closed or not, but by a last try', () => {
    for (const breaker of [new Breaker(options, roomy), opened()]) {
      breaker.hold(1_000)
      expect(breaker.isWell(999)).toBe(false)
      expect(breaker.advise('first', 999)).toBe('wait')
      expect(breaker.advise('last', 999)).toBe('go')
      expect(breaker.advise('first', 1_000)).toBe('go')
    }
  })

  test('for any history: a hook that works is well again in the end, and nothing is left in flight', () => {
    const steps = fc.array(
      fc.record({
        waitMs: fc.integer({ min: 0, max: 8_000 }),
        answer: fc.constantFrom<HookAnswer>('success', 'failure'),
        tryClass: fc.constantFrom<TryClass>('first', 'between', 'last'),
        delays: fc.boolean(),
      }),
      { maxLength: 300 },
    )
    fc.assert(
      fc.property(steps, (history) => {
        const breaker = new Breaker(options, roomy)
        let nowMs = 0
        const out: number[] = []
        for (const { waitMs, answer, tryClass, delays } of history) {
          nowMs += waitMs
          if (breaker.advise(tryClass, nowMs) !== 'go') continue
          const era = breaker.begun(nowMs, tryClass)
          if (delays) out.push(era)
          else breaker.ended(era, answer, nowMs)
        }
        for (const era of out) breaker.ended(era, 'failure', nowMs)
        for (let i = 0; i < 20; i++) {
          nowMs += options.maxOpenMs
          expect(breaker.advise('between', nowMs)).toBe('go')
          run(breaker, 'success', nowMs, 'between')
        }
        expect(breaker.state).toBe('closed')
      }),
      { numRuns: 1_000 },
    )
  })
})
