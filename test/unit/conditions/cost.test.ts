import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { readCondition } from '../../../src/conditions/condition.ts'
import { MessageView } from '../../../src/conditions/message-view.ts'
import { leastCpuMs } from '../../support/cost.ts'

/**
 * What one condition may cost for one message, in milliseconds. 200 nodes times 64 KB are far
 * below it on any machine. Anything that grows with the square of the message is far above: 64 KB squared are
 * 4,000,000,000 steps.
 */
const mostMs = 1_500

const long = 'ab'.repeat(16_000)
const many = Array.from({ length: 8_000 }, (_, at) => at % 7)

/** Messages in which one thing is as large as possible. */
const hostile: readonly object[] = [
  // A search for the one in the other compares nearly all characters at each place.
  {
    event: `${'a'.repeat(16_000)}b${'a'.repeat(16_000)}`,
    properties: { a: 'a'.repeat(60_000), b: 'a'.repeat(60_000), c: 'a'.repeat(100_000), e: { f: '' } },
  },
  { properties: { a: many, b: [...many], c: long, d: long, e: { f: many } } },
  { properties: { a: Array.from({ length: 400 }, () => 'x'.repeat(80)), b: 'x'.repeat(32_000), c: '' } },
  {
    properties: {
      a: Array.from({ length: 3_000 }, () => ({ a: 1, b: [1, 2, 3] })),
      b: [],
      c: '1'.repeat(32_000),
    },
  },
  {
    event: long,
    userId: long,
    properties: { a: [[[[[many]]]]], b: [[[[[many]]]]], c: `${'1'.repeat(30_000)}!` },
  },
]

const field = fc.constantFrom(
  'properties.a',
  'properties.b',
  'properties.c',
  'event',
  'userId',
  'properties.e.f',
)
const ofItem = fc.constantFrom('x', 'x.a', 'x.b', 'x[0]', 'x.size()', 'size(x)')
const literal = fc.constantFrom('1', '"x"', '"ab"', '[1, 2]', '[]', '"' + 'a'.repeat(200) + '"', '0.5')
const comparison = fc.constantFrom('==', '!=', '<', '<=', '>', '>=', 'in', '+', '*')
const method = fc.constantFrom(
  'contains("ba")',
  'contains("bb")',
  'contains(properties.c)',
  'contains(event)',
  'startsWith("ab")',
  'endsWith("a")',
  'glob("*a*b*a*c")',
  'lowerAscii().contains("zz")',
  'trim() == ""',
  'size() > 1',
)
const calls = fc.constantFrom('int', 'double', 'string', 'size', 'timestamp', 'bool', 'duration', 'has')

/** Terms of which some are refused: what counts is that those that are allowed are cheap. */
const term = fc.oneof(
  fc.tuple(field, comparison, fc.oneof(field, literal)).map((parts) => `(${parts.join(' ')}) == true`),
  fc.tuple(field, method).map(([name, call]) => `${name}.${call}`),
  fc.tuple(calls, field).map(([name, argument]) => `string(${name}(${argument})) == "x"`),
  fc
    .tuple(
      fc.constantFrom('exists', 'all', 'exists_one'),
      field,
      ofItem,
      comparison,
      fc.oneof(field, literal, ofItem),
    )
    .map(
      ([macro, list, left, operator, right]) => `${list}.${macro}(x, (${left} ${operator} ${right}) == true)`,
    ),
  fc
    .tuple(field, fc.oneof(field, literal), method)
    .map(([list, other, call]) => `${list}.filter(x, x.${call} || x == ${other}).size() > 1`),
  fc
    .tuple(fc.integer({ min: 1, max: 30 }), fc.constantFrom('+', ','), field, ofItem)
    .map(([count, by, list, item]) => {
      const lists = Array.from({ length: count }, () => list).join(by)
      const range = by === ',' ? `[${lists}]` : `(${lists})`
      return `${range}.all(x, ${Array.from({ length: 8 }, () => `${item} != 0.5`).join(' && ')})`
    }),
  fc.tuple(field, field).map(([one, other]) => `${one} + ${one} + ${other} == ${other}`),
)

const condition = fc
  .array(fc.tuple(fc.constantFrom(' && ', ' || '), fc.constantFrom('', '!'), term), {
    minLength: 1,
    maxLength: 30,
  })
  .map((terms) => terms.map(([and, not, text], at) => `${at === 0 ? '' : and}${not}(${text})`).join(''))

test('no condition that is allowed costs more than its bound, whatever the message', () => {
  const views = hostile.map(
    (message) => new MessageView(Buffer.from(JSON.stringify({ type: 'track', ...message }))),
  )
  for (const view of views) void view.fields
  let allowed = 0
  fc.assert(
    fc.property(condition, (text) => {
      const read = readCondition(text)
      if (!read.ok) return
      allowed++
      for (const view of views) {
        expect(leastCpuMs(mostMs, () => read.condition.of(view))).toBeLessThan(mostMs)
      }
    }),
    { numRuns: 300 },
  )
  // Otherwise this would prove nothing.
  expect(allowed).toBeGreaterThan(20)
})

test('any text is read or refused, and nothing is thrown', () => {
  const noise = fc.oneof(
    fc.string({ maxLength: 300 }),
    fc.string({ unit: 'binary', maxLength: 50 }),
    condition,
  )
  fc.assert(
    fc.property(noise, (text) => {
      const read = readCondition(text)
      if (read.ok) read.condition.of(new MessageView(Buffer.from('{}')))
      else expect(read.fault.advice).not.toBe('')
    }),
    { numRuns: 500 },
  )
})
