import { expect, test } from 'vitest'
import { restAfter } from '../../../src/async/rest.ts'

test('a work rests for so long that it takes a part of the time, and never for long after a standstill', () => {
  const rest = { share: 0.05, leastMs: 100, mostMs: 60_000 }
  expect([1, 100, 600_000].map((tookMs) => Math.round(restAfter(tookMs, rest)))).toEqual([100, 1_900, 60_000])
})
