import { describe, expect, test } from 'vitest'
import { conditionOf } from '../../../src/conditions/condition.ts'
import { conditionOfFql } from '../../../src/conditions/fql.ts'
import { MessageView } from '../../../src/conditions/message-view.ts'

function translated(fql: string): string {
  const result = conditionOfFql(fql)
  return result.ok ? result.condition : `refused: ${result.fault}`
}

function passes(fql: string, message: object): boolean {
  const view = new MessageView(Buffer.from(JSON.stringify(message)))
  return conditionOf(translated(fql)).of(view).kind === 'matches'
}

test.each([
  ['type = "track"', 'type == "track"'],
  ['type = "track" or type = "identify"', 'type == "track" || type == "identify"'],
  [
    'type = "track" and (event = "Product Added" or event = "Order Completed")',
    'type == "track" && (event == "Product Added" || event == "Order Completed")',
  ],
  ['properties.price >= 100', 'properties.price >= 100'],
  ['traits.test = true', 'traits.test == true'],
  ['context.foo = "bar"', 'context.foo == "bar"'],
  ['contains(properties.name, "Nike")', 'properties.name.contains("Nike")'],
  ['match(event, "X*")', 'event.glob("X*")'],
  ['!match(event, "*X")', '!event.glob("*X")'],
  ['lowercase(traits.plan) = "pro"', 'traits.plan.lowerAscii() == "pro"'],
  ['length(properties.items) > 2', 'size(properties.items) > 2'],
  ['properties.currency in ["EUR", "CHF"]', 'properties.currency in ["EUR", "CHF"]'],
  ['channel = "server"', 'message.channel == "server"'],
  ['100 < properties.price', 'properties.price > 100'],
  ['properties.a\\ b = "x"', 'properties["a b"] == "x"'],
])('%s becomes %s', (fql, condition) => {
  expect(translated(fql)).toBe(condition)
})

test.each([
  ['', 'a field or a value is missing at character 1'],
  ['type', 'a comparison is missing'],
  ['type = ', 'a field or a value is missing'],
  ['type * "32456"', 'has no meaning'],
  ['match(event, "X?")', 'know only *'],
  ['typeof(event) = "string"', 'nothing for typeof()'],
  ['(type = "a"', ') is missing'],
  ['type = "a" "b"', 'one word too many'],
  ['type = "a', 'no closing quote'],
  ['properties.a < null', 'only be compared by = and !='],
])('%s is refused: %s', (fql, words) => {
  expect(translated(fql)).toContain(words)
})

/** What the triggers of Segment's destinations say of `properties.value`, by the operator and the value. */
const said: readonly (readonly [fql: string, value: unknown, passes: boolean])[] = [
  ...[true, false, 'true'].map((value) => ['properties.value = true', value, value === true] as const),
  ...[true, false, 'false'].map((value) => ['properties.value = false', value, value === false] as const),
  ['properties.value = "x"', 'x', true],
  ['properties.value = "x"', 'y', false],
  ['properties.value = 123', 123, true],
  ['properties.value = 123', '123', false],
  ['properties.value = 123', 0, false],
  ['properties.value != "x"', 'x', false],
  ['properties.value != "x"', 'y', true],
  ['properties.value != "x"', undefined, true],
  ['properties.value != "123"', 123, true],
  ['properties.value != "123"', '123', false],
  ['properties.value != 123', 456, true],
  ['properties.value != 123', 123, false],
  ['properties.value != 123', '456', false],
  ['properties.value != 123', undefined, false],
  ...[5, '5', 10, '10'].map((value) => ['properties.value < 10', value, value === 5] as const),
  ...[5, '5', 10, '10', 11].map(
    (value) => ['properties.value <= 10', value, value === 5 || value === 10] as const,
  ),
  ...[11, '11', 10, '10', 5].map((value) => ['properties.value > 10', value, value === 11] as const),
  ...[11, '11', 10, 5].map(
    (value) => ['properties.value >= 10', value, value === 11 || value === 10] as const,
  ),
  ['contains(properties.value, "b")', 'abc', true],
  ['contains(properties.value, "b")', 'xyz', false],
  ['contains(properties.value, "b")', undefined, false],
  ['!contains(properties.value, "b")', 'abc', false],
  ['!contains(properties.value, "b")', 'xyz', true],
  ['!contains(properties.value, "b")', undefined, false],
  ['match(properties.value, "x*")', 'xabc', true],
  ['match(properties.value, "x*")', 'abc', false],
  ['!match(properties.value, "x*")', 'xabc', false],
  ['!match(properties.value, "x*")', 'abc', true],
  ['match(properties.value, "*x")', 'abcx', true],
  ['match(properties.value, "*x")', 'abc', false],
  ['!match(properties.value, "*x")', 'abcx', false],
  ['!match(properties.value, "*x")', 'abc', true],
  ['properties.value != null', 'x', true],
  ['properties.value != null', 0, true],
  ['properties.value != null', null, false],
  ['properties.value != null', undefined, false],
  ['properties.value = null', 'x', false],
  ['properties.value = null', null, true],
  ['properties.value = null', undefined, true],
]

function track(event: string, properties: object): object {
  return { type: 'track', event, properties }
}

describe('says the same as at Segment', () => {
  test.each(said)('%s with %j: %s', (fql, value, expected) => {
    expect(passes(fql, { type: 'track', properties: { value } })).toBe(expected)
  })

  test('also if whole objects are absent', () => {
    const identify = { type: 'identify', userId: 'u1', traits: { logins: 120, plan: 'premium' } }
    expect(passes('properties.value = null', identify)).toBe(true)
    expect(passes('properties.value != "x"', identify)).toBe(true)
    expect(passes('properties.a.b.c = null and traits.logins >= 100', identify)).toBe(true)
    expect(passes('type = "identify" and traits.plan = "premium"', identify)).toBe(true)
    expect(passes('not (type = "track" or traits.plan = "free")', identify)).toBe(true)
    expect(passes('not (traits.plan = "premium" and traits.logins >= 100)', identify)).toBe(false)
    expect(passes('userId != null and name = null', identify)).toBe(true)
    expect(passes('event = "x" or userId = "u1"', identify)).toBe(true)
  })

  test('with groups in groups', () => {
    const fql =
      '(event = "Product Added" and properties.price >= 100) or (event = "Order Completed" and properties.total >= 500)'
    expect(passes(fql, track('Product Added', { price: 100 }))).toBe(true)
    expect(passes(fql, track('Product Added', { total: 500 }))).toBe(false)
    expect(passes(fql, track('Order Completed', { total: 500 }))).toBe(true)
    expect(passes(fql, track('Order Completed', { price: 500 }))).toBe(false)
  })
})
