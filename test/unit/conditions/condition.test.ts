import { describe, expect, test } from 'vitest'
import { Condition, conditionOf, readCondition } from '../../../src/conditions/condition.ts'
import { MessageView } from '../../../src/conditions/message-view.ts'

const order = {
  type: 'track',
  event: 'Order Completed',
  userId: 'u1',
  properties: {
    total: 120.5,
    count: 3,
    currency: 'EUR',
    isGift: false,
    coupon: null,
    tags: ['new', 'vip'],
    items: [
      { sku: 'A1', price: 10, isNew: true },
      { sku: 'B2', price: 110.5 },
    ],
    address: { city: 'Köln' },
    'odd key': 'x',
  },
  context: { ip: '203.0.113.7' },
  timestamp: '2026-07-23T14:03:12.402Z',
}

function viewOf(message: object): MessageView {
  return new MessageView(Buffer.from(JSON.stringify(message)))
}

function kindOf(condition: string, message: object = order): string {
  return conditionOf(condition).of(viewOf(message)).kind
}

function refusal(text: string): string {
  const read = readCondition(text)
  return read.ok ? 'allowed' : `${read.fault.problem}: ${read.fault.advice}`
}

describe('what matches', () => {
  test.each([
    'type == "track"',
    'event == "Order Completed" && properties.total > 100 && properties.currency in ["EUR", "CHF"] && userId != ""',
    'properties.count == 3',
    'properties.count == 3.0',
    '3 == properties.count',
    'properties.count in [1, 2, 3]',
    'properties.total * 2 == 241',
    '2 * properties.total > 240.5',
    'properties.count + 1 == 4 && properties.count % 2 == 1 && properties.count / 2 == 1.5',
    'event.glob("Order *") && !event.glob("Order")',
    'properties.currency.lowerAscii() == "eur"',
    '"vip" in properties.tags && size(properties.tags) == 2',
    'properties.tags[1] == "vip"',
    'properties.items.exists(item, item.price > 100)',
    'properties.items.all(item, item.sku.startsWith("A") || item.sku.endsWith("2"))',
    'properties.items.exists_one(item, item.sku == "A1")',
    'properties.items.filter(item, item.price < 50).size() == 1',
    'properties.items.exists(item, item.price < properties.total)',
    'has(properties.address.city) && !has(properties.address.street)',
    'properties["odd key"] == "x" && message.event == event',
    'timestamp(timestamp) > timestamp("2026-01-01T00:00:00Z") - duration("24h")',
    'timestamp(timestamp).getFullYear() == 2026',
    'properties.coupon == null',
    '!properties.isGift',
    'properties.total > 1000 ? false : true',
    '!has(message.traits)',
    '!has(traits.plan) && !("plan" in traits)',
    '[properties.currency, properties.coupon].exists(one, one == "EUR")',
    '["EUR", "CHF", "GBP", "USD", "SEK", "NOK", "DKK", "PLN"].exists(one, one == properties.currency && one != "" && one != "x")',
    '(properties.isGift ? properties.tags : properties.items).filter(one, one.price > 100).all(one, one.sku == "B2")',
    'properties.missing == 1 || type == "track"',
    'properties.address.city == "Köln"',
  ])('%s', (condition) => {
    expect(kindOf(condition)).toBe('matches')
  })
})

test.each([
  ['properties.total > 1000', 'differs'],
  ['properties.currency == 5', 'differs'],
  ['properties.missing == "x"', 'lacks'],
  // In CEL, `!` of something that can't be said can't be said either.
  ['!(properties.missing == "x")', 'lacks'],
  ['properties.missing != "x"', 'lacks'],
  ['traits.plan == "pro"', 'lacks'],
  ['groupId == "g"', 'lacks'],
  ['properties.currency > 5', 'lacks'],
  ['properties.total.startsWith("1")', 'lacks'],
  ['properties.tags[7] == "x"', 'lacks'],
  ['properties.currency.exists(one, one == "E")', 'lacks'],
  ['properties.total', 'lacks'],
  ['properties.missing == "x" && type == "page"', 'differs'],
  ['int(properties.currency) > 1', 'failed'],
  ['timestamp(properties.currency) > timestamp("2026-01-01T00:00:00Z")', 'failed'],
  ['1 / 0 == 1', 'failed'],
])('%s: %s', (condition, kind) => {
  expect(kindOf(condition)).toBe(kind)
})

test.each([
  ['properties.currency > 5', 'it compares a text with a number at character 1: properties.currency > 5'],
  [
    '5 <= properties.isGift',
    'it compares a number with true or false at character 1: 5 <= properties.isGift',
  ],
  ['properties.missing == "x"', 'the message has no such field at character 12: properties.missing'],
  ['properties.tags + 1 == 2', "a list and a number don't go together at character 1: properties.tags + 1"],
])('why %s does not match is said in plain words', (condition, detail) => {
  expect(conditionOf(condition).of(viewOf(order))).toEqual({ kind: 'lacks', detail })
})

test('no word about a fault has anything of the message', () => {
  for (const condition of [
    'int(properties.secret) > 1',
    'bool(properties.secret)',
    'double(properties.secret) > 1.0',
    'properties.secret > 1',
    'properties.secret.exists(one, one == 1)',
  ]) {
    const said = conditionOf(condition).of(viewOf({ properties: { secret: 'hunter2' } }))
    expect(JSON.stringify(said)).not.toContain('hunter2')
    expect(said).toHaveProperty('detail')
  }
})

test.each([
  ['event.matches("(a+)+$")', 'glob()'],
  ['properties.items.map(item, item.price).size() > 1', 'exists()'],
  ['properties.items.exists(a, a.list.exists(b, b == 1))', 'another macro'],
  ['properties.items.exists(item, item.sku in properties.tags)', 'for each item'],
  ['properties.items.exists(item, properties.tags == properties.others)', 'for each item'],
  ['properties.items.exists(item, event.contains("a"))', 'for each item'],
  ['properties.items.exists(item, event.contains(item))', 'as text'],
  ['properties.items.exists(event, event == 1)', 'choose one that no field'],
  ['event.glob(properties.pattern)', 'as text'],
  ['event.contains(properties.pattern)', 'as text'],
  ['properties.items.exists(item, item.a.contains(item.b))', 'as text'],
  ['(properties.items + properties.items).all(item, item.price > 1)', 'makes the list of all() from others'],
  [
    '[properties.a, properties.a, properties.a, properties.a, properties.a, properties.a, properties.a].all(one, one.size() > 1 && one.size() > 2 && one.size() > 3)',
    'makes the list of all() from others',
  ],
  ['duration(properties.wait) > duration("1h")', 'as text'],
  ['cel.bind(x, event + event, x == "a")', 'bind()'],
  ['event.split("").size() > 1', 'split()'],
  ['bytes(event).json().a == 1', 'json()'],
  ['event == 5', 'no such overload: string == int'],
  ['event', 'type string'],
  ['nope == 1', 'nknown variable: nope at character 1'],
  ['event == "a" &&', 'character'],
  ['event = "a"', 'character'],
  ['type == 5', 'string == int'],
  [`event == "${'x'.repeat(2_000)}"`, 'write at most 2000'],
  [Array.from({ length: 70 }, (_, at) => `event == "${at}"`).join(' || '), 'more than 200'],
  ['('.repeat(60) + 'true' + ')'.repeat(60), '50 levels'],
  ['properties.?plan == "x"', 'character'],
])('%s is refused: %s', (condition, words) => {
  expect(refusal(condition)).toContain(words)
})

test('keys of messages that JavaScript knows mean nothing else', () => {
  const odd = JSON.parse(
    '{"type":"track","event":"E","properties":{"constructor":1,"__proto__":{"admin":true},"toString":"t","a":{"constructor":{"x":2}}}}',
  )
  expect(kindOf('properties.constructor == 1 && properties.toString == "t"', odd)).toBe('matches')
  expect(kindOf('properties.a.constructor.x == 2 && event == "E"', odd)).toBe('matches')
  expect(kindOf('properties.admin == true', odd)).toBe('lacks')
  expect(kindOf('has(properties.hasOwnProperty)', odd)).toBe('differs')
  expect(kindOf('properties.constructor == 1', { properties: {} })).toBe('lacks')
  expect(Object.hasOwn(Object.prototype, 'admin')).toBe(false)
})

test('a condition is read once for all destinations that have it', () => {
  expect(conditionOf('event == "Once"')).toBe(conditionOf('event == "Once"'))
  expect(conditionOf('event == "Once"')).toBeInstanceOf(Condition)
})

test('a message is parsed once for all conditions, and not before one needs it', () => {
  const view = viewOf(order)
  conditionOf('event == "a"').of(view)
  const first = view.value
  conditionOf('event == "b"').of(view)
  expect(view.value).toBe(first)
  expect(() => new MessageView(Buffer.from('no JSON'))).not.toThrow()
})
