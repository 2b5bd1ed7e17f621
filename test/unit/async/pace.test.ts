import { expect, test } from 'vitest'
import { Breath } from '../../../src/async/breath.ts'
import { Pace } from '../../../src/async/pace.ts'

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
