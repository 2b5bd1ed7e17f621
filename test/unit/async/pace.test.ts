import { describe, expect, test } from 'vitest'
import { Breath } from '../../../src/async/breath.ts'
import { Pace, shareOf } from '../../../src/async/pace.ts'
import { until } from '../../support/until.ts'

/** Timers count whole milliseconds. */
const earlyMs = 2

test('after each piece, a work rests so long that it takes its share of the time', async () => {
  const pace = new Pace({ share: 0.25, pieceMs: 2 })
  const startedMs = performance.now()
  for (let piece = 0; piece < 10; piece++) await pace.rest(2)
  expect(performance.now() - startedMs).toBeGreaterThan(60 - earlyMs)
})

test('two works share the time', async () => {
  const pace = new Pace({ share: 0.1, pieceMs: 2 })
  const startedMs = performance.now()
  await Promise.all([pace.rest(2), pace.rest(2)])
  expect(performance.now() - startedMs).toBeGreaterThan(36 - earlyMs)
})

test('a work of one piece rests only before a further one', async () => {
  const pace = new Pace({ share: 0.01, pieceMs: 2 })
  const breath = new Breath(2, pace)
  let turns = 0
  setImmediate(() => turns++)
  await breath.take()
  expect(turns).toBe(0)
})

test('a piece that the machine has stopped makes no rest longer than two pieces do', async () => {
  const pace = new Pace({ share: 0.5, pieceMs: 2 })
  const startedMs = performance.now()
  const rest = pace.rest(60_000)
  await Promise.race([rest, new Promise((resolve) => setTimeout(resolve, 10_000))])
  expect(performance.now() - startedMs).toBeLessThan(9_000)
})

describe('a share that depends on what else needs the time', () => {
  const bounds = { least: 0.2, most: 0.8 }
  const used = (given: { activeMs: number; cpuMs: number; tookMs: number }) =>
    shareOf({ windowMs: 200, ...given }, bounds)

  test('is the largest while the loop has nothing else to do', () => {
    expect(used({ activeMs: 160, cpuMs: 160, tookMs: 160 })).toBe(0.8)
    expect(used({ activeMs: 50, cpuMs: 45, tookMs: 45 })).toBe(0.8)
  })

  test('falls as the loop does other work, twice as much, down to the least', () => {
    expect(used({ activeMs: 100, cpuMs: 100, tookMs: 60 })).toBeCloseTo(0.6)
    expect(used({ activeMs: 120, cpuMs: 120, tookMs: 60 })).toBeCloseTo(0.4)
    expect(used({ activeMs: 140, cpuMs: 140, tookMs: 40 })).toBe(0.2)
  })

  test('falls while other programs get the processor that the loop wants', () => {
    expect(used({ activeMs: 160, cpuMs: 140, tookMs: 160 })).toBe(0.8)
    expect(used({ activeMs: 160, cpuMs: 120, tookMs: 160 })).toBeCloseTo(0.6)
    expect(used({ activeMs: 160, cpuMs: 60, tookMs: 160 })).toBe(0.2)
  })

  test('is measured again and again, and is the least after a time without work', async () => {
    const thread = { activeMs: 0, cpuMs: 0 }
    const pace = new Pace({ share: 0.01, idleShare: 1, pieceMs: 2, used: () => ({ ...thread }) })
    const isAtOnce = async (): Promise<boolean> => {
      const startedMs = performance.now()
      await pace.rest(0.5)
      return performance.now() - startedMs < 40
    }
    // At the least share, half a millisecond of work is followed by 49.5 of rest.
    expect(await isAtOnce()).toBe(false)
    await until('the loop is found idle', isAtOnce)
    let startedMs = performance.now()
    await until('what else it does is found', async () => {
      const nowMs = performance.now()
      thread.activeMs += nowMs - startedMs
      thread.cpuMs += nowMs - startedMs
      startedMs = nowMs
      return !(await isAtOnce())
    })
  })
})
