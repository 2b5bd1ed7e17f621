import { expect, test } from 'vitest'
import { aligned } from '../../../../src/roles/operations/aligned.ts'

const rows = [
  ['destination', 'why'],
  ['crm', 'it answers 503 to each request since this morning'],
  ['a-destination-with-a-name-that-is-very-long', 'ok'],
]

test('a table is as wide as it needs where no terminal is given', () => {
  expect(aligned(rows, undefined)).toEqual([
    'destination                                  why',
    'crm                                          it answers 503 to each request since this morning',
    'a-destination-with-a-name-that-is-very-long  ok',
  ])
})

test('on a terminal, its widest columns are cut, and each cut is visible', () => {
  const lines = aligned(rows, 40)
  expect(lines.map((line) => line.length <= 40)).toEqual([true, true, true])
  expect(lines).toEqual([
    'destination          why',
    'crm                  it answers 503 to …',
    'a-destination-with…  ok',
  ])
})

test('on a very narrow terminal, no line breaks', () => {
  expect(aligned(rows, 20).every((line) => line.length <= 20)).toBe(true)
})
