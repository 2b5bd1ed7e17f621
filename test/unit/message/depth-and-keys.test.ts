import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findExcess, measureStructure } from '../../../src/message/depth-and-keys.ts'

const generous = { maxDepth: 1_000, maxKeys: 1_000_000 }

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}

function keysOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const members = Object.values(value)
  return (
    (Array.isArray(value) ? 0 : members.length) +
    members.reduce<number>((sum, member) => sum + keysOf(member), 0)
  )
}

/** Values that are both deep and wide, with strings full of brackets. */
const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'large', maxDepth: 12 },
    fc.constantFrom<unknown>(null, 0, '', '{[', ']}'),
    fc.array(tie('json'), { maxLength: 3 }),
    fc.dictionary(fc.string({ maxLength: 2 }), tie('json'), { maxKeys: 3, noNullPrototype: true }),
  ),
}))
const object = fc.dictionary(fc.string({ maxLength: 2 }), json, { maxKeys: 5, noNullPrototype: true })
const added = fc.constantFrom(
  {},
  { version: 1, context: {} },
  Object.fromEntries(Array.from('abcdefgh', (_, i) => [`added${i}`, i])),
)

test('too deep or too many keys is found, and nothing else is', () => {
  const seen = { undefined: 0, nested_too_deep: 0, too_many_keys: 0 }
  fc.assert(
    fc.property(
      object,
      added,
      fc.integer({ min: 2, max: 8 }),
      fc.nat(30),
      (sent, more, maxDepth, maxKeys) => {
        const message = { ...sent, ...more }
        const found = findExcess(JSON.stringify(sent), message, { maxDepth, maxKeys })
        const isTooDeep = depthOf(message) > maxDepth
        const hasTooMany = keysOf(message) > maxKeys
        if (!isTooDeep && !hasTooMany) expect(found).toBeUndefined()
        else expect([isTooDeep && 'nested_too_deep', hasTooMany && 'too_many_keys']).toContain(found)
        seen[found ?? 'undefined'] += 1
      },
    ),
    { numRuns: 5_000 },
  )
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(100)
})

test('a value that is weighed has its keys counted, or is too deep, or has too many or an infinite number', () => {
  const number = fc.constantFrom<unknown>(Infinity, -Infinity, 1)
  fc.assert(
    fc.property(
      object,
      fc.option(number),
      fc.integer({ min: 2, max: 8 }),
      fc.nat(30),
      (sent, more, maxDepth, maxKeys) => {
        const message = { ...sent, more: [more] }
        const faults = [
          ...(depthOf(message) > maxDepth ? ['nested_too_deep'] : []),
          ...(keysOf(message) > maxKeys ? ['too_many_keys'] : []),
        ]
        const weighed = measureStructure(message, { maxDepth, maxKeys })
        if (faults.length > 0) expect(faults).toContain(!weighed.ok && weighed.fault)
        else if (more === Infinity || more === -Infinity) {
          expect(weighed).toEqual({ ok: false, fault: 'number_out_of_range' })
        } else expect(weighed).toEqual({ ok: true, keys: keysOf(message) })
      },
    ),
    { numRuns: 5_000 },
  )
})

test('a value that is deeper than the stack is weighed too', () => {
  const value: object = JSON.parse(nested(200_000))
  expect(measureStructure(value, generous)).toEqual({ ok: false, fault: 'nested_too_deep' })
})

const nested = (levels: number) => `{"":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
const chain = (count: number) => `${'{"":'.repeat(count)}0${'}'.repeat(count)}`

function wide(count: number): string {
  const inner = Array.from({ length: count - 1 }, (_, index) => `"${index.toString(36)}":0`).join(',')
  return `{"":{${inner}}}`
}

function find(text: string, limits: Partial<typeof generous>) {
  return findExcess(text, Object(JSON.parse(text)), { ...generous, ...limits })
}

describe('the shortest text that reaches a limit', () => {
  test('of levels is let pass, one more is not', () => {
    expect(find(nested(100), { maxDepth: 100 })).toBeUndefined()
    expect(find(nested(101), { maxDepth: 100 })).toBe('nested_too_deep')
  })

  test('of keys is let pass, one more is not', () => {
    expect(find(wide(100), { maxKeys: 100 })).toBeUndefined()
    expect(find(wide(101), { maxKeys: 100 })).toBe('too_many_keys')
  })

  test('of keys in a chain of objects is let pass, one more is not', () => {
    expect(find(chain(100), { maxKeys: 100 })).toBeUndefined()
    expect(find(chain(101), { maxKeys: 100 })).toBe('too_many_keys')
  })
})

test('a million levels take no stack', () => {
  let deep: unknown[] = []
  for (let level = 0; level < 1_000_000; level++) deep = [deep]
  expect(findExcess('['.repeat(2_000), { deep }, { maxDepth: 1_000, maxKeys: 10 })).toBe('nested_too_deep')
})
