import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NumberReader } from '../../../../src/audience/records/number-reader.ts'

describe('a reader of numbers', () => {
  test('reads what is written, one after the other', () => {
    fc.assert(
      fc.property(fc.array(fc.maxSafeInteger(), { minLength: 1 }), (numbers) => {
        const reader = new NumberReader(`<${numbers.join(', ')}>`, 1)
        for (const [index, number] of numbers.entries()) {
          if (index > 0) expect(reader.skip(', ')).toBe(true)
          expect(reader.next()).toBe(number)
        }
        expect(reader.skip('>')).toBe(true)
      }),
      { numRuns: 1_000 },
    )
  })

  test('finds no number where JSON has none', () => {
    for (const text of ['', 'x', '-', '-x', '01', '-0', '-01', '00', '.5', ' 1', '+1', '12345678901234567']) {
      expect(new NumberReader(text, 0).next()).toBeNaN()
    }
  })

  test('stays where it is when something else is there than what is to be skipped', () => {
    const reader = new NumberReader('1.1.', 1)
    expect(reader.skip('.0.')).toBe(false)
    expect(reader.skip('.1.')).toBe(true)
    expect(reader.at).toBe(4)
  })
})
