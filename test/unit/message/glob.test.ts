import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { globOf, isGlob } from '../../../src/message/glob.ts'

test.each([
  ['Order *', 'Order Completed', true],
  ['Order *', 'Order ', true],
  ['Order *', 'Order', false],
  ['* Completed', 'Order Completed', true],
  ['*rder*Compl*', 'Order Completed', true],
  ['a*a', 'a', false],
  ['a*a', 'aa', true],
  ['a*ba*ba', 'aba', false],
  ['a*b*c', 'abbbc', true],
  ['*', '', true],
  ['**', 'x', true],
  ['Order?', 'Orders', false],
  ['Order [1]', 'Order [1]', true],
  [String.raw`50\* off`, '50* off', true],
  [String.raw`50\* off`, '50 % off', false],
  [String.raw`a\b*`, String.raw`a\bc`, true],
  ['plain', 'plain', true],
  ['plain', 'plainer', false],
])('%s and %s: %s', (pattern, text, expected) => {
  expect(globOf(pattern)(text)).toBe(expected)
})

test('it says the same as a regular expression, and needs none', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 12 })
  fc.assert(
    fc.property(text, text, (pattern, tried) => {
      const expression = new RegExp(`^${pattern.replaceAll('*', '.*')}$`)
      expect(globOf(pattern)(tried)).toBe(expression.test(tried))
      expect(isGlob(pattern)).toBe(pattern.includes('*'))
    }),
    { numRuns: 2_000 },
  )
})
