import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SharedObject, withIp } from '../../../../src/gateway/messages/shared-object.ts'
import { defaultLimits } from '../../../../src/message/limits.ts'
import { RawObject } from '../../../../src/message/message-outline.ts'

const name = fc.constantFrom('a', 'b', 'é漢', '__proto__', '7', '"\\', 'ip')
const object = fc.dictionary(name, fc.jsonValue({ maxDepth: 2 }), { minKeys: 1, noNullPrototype: true })

function sharedOf(text: string, limits = defaultLimits): SharedObject {
  return new SharedObject(new RawObject(text), limits)
}

function keysOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const members: unknown[] = Object.values(value)
  return members.reduce((keys: number, one) => keys + keysOf(one), Array.isArray(value) ? 0 : members.length)
}

/** Returns the fields of an object, sorted by name, so that their order makes no difference. */
function sorted(value: object): unknown {
  return Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1))
}

describe('what a batch says for all', () => {
  test('is what a message has that says nothing itself', () => {
    const shared = sharedOf('{"a":{"b":[1]},"é":2}')
    for (const own of [undefined, null, {}]) {
      expect(shared.with(own)).toEqual({ text: '{"a":{"b":[1]},"é":2}', bytes: 22, keys: 3 })
    }
  })

  test('gives way to the fields of a message’s own, in their place', () => {
    const shared = sharedOf('{"a":1,"b":{"c":2},"d":3}')
    const { text, keys } = shared.with({ d: [], b: true, e: 'x' })
    expect(text).toBe('{"a":1,"b":true,"d":[],"e":"x"}')
    expect(keys).toBe(1)
  })

  test('is merged as two objects that are spread, and counted', () => {
    fc.assert(
      fc.property(object, fc.option(object), (value, own) => {
        const { text, bytes, keys } = sharedOf(JSON.stringify(value)).with(own)
        const merged = { ...value, ...own }
        expect(sorted(JSON.parse(text))).toEqual(sorted(JSON.parse(JSON.stringify(merged))))
        expect(bytes).toBe(Buffer.byteLength(text))
        const lost = new Set(Object.keys(own ?? {}))
        const left = Object.fromEntries(Object.entries(value).filter(([one]) => !lost.has(one)))
        expect(keys).toBe(keysOf(left))
      }),
      { numRuns: 1_000 },
    )
  })

  test.each([
    ['nested_too_deep', '{"a":{"a":{"a":1}}}'],
    ['too_many_keys', '{"a":1,"b":2,"c":3,"d":4}'],
    ['number_out_of_range', '{"a":[1e999]}'],
  ])('keeps all messages from being written: %s', (fault, text) => {
    const limits = { ...defaultLimits, maxDepth: 3, maxKeys: 3 }
    expect(sharedOf(text, limits).fault).toBe(fault)
  })
})

test('the address of a request joins a context as if both were spread, and an `ip` of the context stays', () => {
  fc.assert(
    fc.property(fc.option(object), (value) => {
      const text = JSON.stringify(value ?? {})
      const expected: unknown = { ip: '192.0.2.1', ...value }
      expect(withIp(new RawObject(text), '192.0.2.1').text).toBe(JSON.stringify(expected))
    }),
    { numRuns: 1_000 },
  )
})
