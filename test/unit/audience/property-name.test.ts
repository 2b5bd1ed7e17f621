import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { propertyName } from '../../../src/audience/property-name.ts'

const named = (name: string): string | undefined => propertyName({ key: undefined, name })

describe('the name of a property', () => {
  test.each([
    ['Order Completed Last 30days', 'order_completed_last_30days'],
    ['orderCompletedLast30days', 'order_completed_last30days'],
    ['Top10 Users', 'top10_users'],
    ['  Big -- spenders!! ', 'big_spenders'],
    ['HTTPServer users', 'http_server_users'],
    ['Käufer & Größe', 'käufer_größe'],
    ['Cafe\u0301 lovers', 'café_lovers'],
    ['हिन्दी पाठक', 'हिन्दी_पाठक'],
    ['Покупатели 2024', 'покупатели_2024'],
    ['高価値 顧客', '高価値_顧客'],
    ['❤️ Fans 🎉', 'fans'],
    ['1️⃣ First', '1_first'],
    ['__proto__', 'proto'],
  ])('%j is %j', (name, property) => {
    expect(named(name)).toBe(property)
  })

  test.each(['!!!', '❤️🎉', '   ', '\u0301', '\ud800'])('nothing is left of %j', (name) => {
    expect(named(name)).toBeUndefined()
  })

  test('a key wins over the name, and is taken as it is', () => {
    expect(propertyName({ key: 'My-Key 1', name: 'Other' })).toBe('My-Key 1')
    expect(propertyName({ key: '__proto__', name: 'Other' })).toBe('__proto__')
    expect(propertyName({ key: '  ', name: 'Other' })).toBeUndefined()
  })

  test('a name of 1,000 characters is no trouble', () => {
    expect(named('a'.repeat(1_000))).toBe('a'.repeat(1_000))
    expect(named('aA'.repeat(500))?.length).toBe(1_500)
  })

  test('whatever the name, the property is the same each time, and is its own name', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 50 }), (name) => {
        const made = named(name)
        expect(named(name)).toBe(made)
        if (made === undefined) return
        expect(made).toMatch(/^[\p{L}\p{N}\p{M}_]+$/u)
        expect(made).not.toMatch(/^_|__|_$/)
      }),
      { numRuns: 1_000 },
    )
  })
})
