import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { losesDigits } from '../../../../src/message/json/json-numbers.ts'
import { lastNumber, numberBytes, writeNumber } from '../../../../src/message/json/number-writer.ts'

type Result = { readonly text: string; readonly isInfinite: boolean; readonly hasLostDigits: boolean }

/** What comes before and after a number is not a part of it. */
const before = '7,'
const after = '9'

function written(token: string): Result {
  const from = Buffer.from(before + token + after)
  const length = writeNumber(from, before.length, before.length + token.length)
  expect(length).toBeLessThanOrEqual(numberBytes.length)
  return { text: numberBytes.toString('latin1', 0, length), ...lastNumber }
}

function expected(token: string): Result {
  const value = Number(token)
  const isInfinite = !Number.isFinite(value)
  const text = isInfinite ? `${value < 0 ? '-' : ''}1e999` : JSON.stringify(value)
  return { text, isInfinite, hasLostDigits: losesDigits(token, value) }
}

const digit = fc.integer({ min: 0, max: 9 })
const digitsOf = (maxLength: number): fc.Arbitrary<string> =>
  fc.oneof(
    fc.array(digit, { maxLength }).map((all) => all.join('')),
    // Digits with zeros around them.
    fc
      .tuple(fc.nat({ max: maxLength }), fc.nat({ max: 99_999 }), fc.nat({ max: maxLength }))
      .map(([zeros, middle, more]) => '0'.repeat(zeros) + String(middle) + '0'.repeat(more)),
  )
const wholeDigits = digitsOf(24).map((text) => text.replace(/^0+(?=\d)/, '') || '0')
const fraction = fc.oneof(
  fc.constant(''),
  digitsOf(24).map((text) => (text === '' ? '' : `.${text}`)),
)
const exponent = fc.oneof(
  { weight: 2, arbitrary: fc.constant('') },
  fc
    .tuple(
      fc.constantFrom('e', 'E', 'e+', 'E-', 'e-'),
      fc.oneof(fc.nat({ max: 30 }), fc.integer({ min: 280, max: 350 }), fc.nat({ max: 100_000 })),
      fc.constantFrom('', '0', '00'),
    )
    .map(([letter, power, zeros]) => letter + zeros + String(power)),
)
const number = fc
  .tuple(fc.constantFrom('', '-'), wholeDigits, fraction, exponent)
  .map((parts) => parts.join(''))

describe('a number is written as JSON.stringify writes what JSON.parse has read:', () => {
  test('any', () => {
    fc.assert(
      fc.property(number, (token) => {
        expect(written(token)).toEqual(expected(token))
      }),
      { numRuns: 5_000 },
    )
  })

  test('whole numbers of 16 to 21 digits, most of which lose digits', () => {
    const nearPowers = fc
      .tuple(fc.bigInt({ min: 50n, max: 69n }), fc.bigInt({ min: -3_000n, max: 3_000n }))
      .map(([bits, more]) => String(2n ** bits + more))
    const any = fc.bigInt({ min: 10n ** 15n, max: 10n ** 21n - 1n }).map(String)
    fc.assert(
      fc.property(fc.oneof(nearPowers, any), fc.constantFrom('', '-'), (digits, sign) => {
        expect(written(sign + digits)).toEqual(expected(sign + digits))
      }),
      { numRuns: 5_000 },
    )
  })

  test('numbers close to the smallest double, and to the largest', () => {
    const tiny = fc
      .tuple(
        fc.oneof(
          fc.nat({ max: 2_000 }),
          fc.nat({ max: 2_000_000_000 }),
          fc.nat({ max: 999_999_999_999_999 }),
        ),
        fc.integer({ min: 303, max: 340 }),
      )
      .map(([whole, power]) => `${whole}e-${power}`)
    const ofSmallest = fc
      .tuple(fc.nat({ max: 3_000_000_000 }), fc.constantFrom(0, 1, -1))
      .map(([multiple, more]) => String((multiple + more) * 5e-324).replace(/^-/, ''))
    const large = fc
      .tuple(fc.nat({ max: 99_999 }), fc.integer({ min: 300, max: 310 }))
      .map(([whole, power]) => `${whole}e${power}`)
    fc.assert(
      fc.property(fc.oneof(tiny, ofSmallest, large), fc.constantFrom('', '-'), (token, sign) => {
        expect(written(sign + token)).toEqual(expected(sign + token))
      }),
      { numRuns: 20_000 },
    )
    for (let whole = 1; whole < 3_000; whole++) {
      for (const power of [320, 321, 322, 323, 324, 325]) {
        const token = `${whole}e-${power}`
        if (written(token).text !== expected(token).text) expect(written(token)).toEqual(expected(token))
      }
    }
  })

  test('doubles of all sizes', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        expect(written(JSON.stringify(value))).toEqual(expected(JSON.stringify(value)))
      }),
      { numRuns: 5_000 },
    )
  })

  test.each([
    ['0', '-0', '0.0', '-0e5', '0e999', '1.0', '1.50', '100', '1e2', '1E+2', '0.1e1'],
    ['1e20', '1e21', '123e19', '1e-6', '1e-7', '0.000001', '0.0000012', '12e-8', '999999999999999e6'],
    ['1e999', '-1e999', '1e309', '1e310', '1.7976931348623157e308', '1.7976931348623159e308'],
    ['5e-324', '2e-324', '3e-324', '1e-331', '1234e-320', '-1e-400', '2.2250738585072014e-308'],
    ['9007199254740992', '9007199254740993', '999999999999999999999', '1000000000000000000000'],
    ['10000000000000000000000', '123456789000000000000', '0.1234567890123456', '0.12345678901234567'],
    [`0.${'0'.repeat(400)}1e401`, `1${'0'.repeat(400)}e-400`, '9'.repeat(400), '1e-99999999999999999999'],
  ])('%s, …', (...tokens) => {
    for (const token of tokens) expect({ token, ...written(token) }).toEqual({ token, ...expected(token) })
  })
})
