import { expect, test } from 'vitest'
import { hasNoneBetween, tenureOf, writerOf } from '../../../src/waiting/tenure.ts'

test('the id of a writer tells its tenure, and is the id of no other', () => {
  const tenure = { epoch: 12, sinceMs: 1_796_031_473_453 }
  expect(tenureOf(writerOf(tenure))).toEqual(tenure)
  expect(writerOf(tenure)).not.toBe(writerOf(tenure))
  // It is a part of keys and headers, whose parts slashes divide.
  expect(writerOf(tenure)).not.toContain('/')
})

test('other ids tell no tenure', () => {
  for (const id of ['', 'x8fj3kQ-', '12', 'a.b.c', '1..x']) expect(tenureOf(id)).toBeUndefined()
})

test('between a tenure and one with the same epoch, or the epoch before, none has committed', () => {
  const tenure = { epoch: 12, sinceMs: 5 }
  const certain = [10, 11, 12, 13].filter((epoch) => hasNoneBetween({ epoch, sinceMs: 9 }, tenure))
  expect(certain).toEqual([11, 12])
})
