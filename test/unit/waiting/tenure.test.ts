import { expect, test } from 'vitest'
import { isJustBefore, tenureOf, writerOf } from '../../../src/waiting/tenure.ts'

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

test('only the tenure with the epoch before comes just before another one', () => {
  const tenure = { epoch: 12, sinceMs: 5 }
  const justBefore = [10, 11, 12, 13].filter((epoch) => isJustBefore({ epoch, sinceMs: 9 }, tenure))
  expect(justBefore).toEqual([11])
})
