import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { enter } from '../../../src/message/enter.ts'
import type { Entered, Origin } from '../../../src/message/entered.ts'
import { attributesFields, type MessageKind, messageKinds } from '../../../src/message/message-schemas.ts'
import { refusalReasons } from '../../../src/message/dead-letter-reasons.ts'
import { parseBody, spelledJson, spelledMessage } from './json-text.ts'

const runs = { numRuns: 2000 }
const origin: Origin = { topic: 'sluice.events', partition: 3, offset: 42, timestampMs: 1_700_000_000_000 }
const elsewhere: Origin = { topic: 'other', partition: 0, offset: 7, timestampMs: 0 }

function accepted(value: Uint8Array, from: Origin = origin): Entered {
  const result = enter(value, from)
  if (!result.ok) throw new Error(`refused: ${result.reason}`)
  return result.message
}

/** Returns the value of an object's own key, even if the key is `__proto__`. */
const own = (object: object, key: string): unknown => Object.getOwnPropertyDescriptor(object, key)?.value

/** Returns true for a field that is written anew when a message enters. */
function isReplaced(key: string, sent: unknown, type: MessageKind): boolean {
  if (key === attributesFields[type]) return sent === null
  if (key === 'version') return typeof sent !== 'number'
  if (key === 'context' || key === 'previousId') return sent === null
  return key === 'timestamp' || (key === 'messageId' && !sent)
}

describe('the body of an entered message', () => {
  test('is what a receiver gets by parsing and stringifying it', () => {
    fc.assert(
      fc.property(spelledMessage, ({ text }) => {
        const body = accepted(Buffer.from(text)).body.toString()
        expect(JSON.stringify(parseBody(body))).toBe(body)
      }),
      runs,
    )
  })

  test('holds every field of the producer as it was', () => {
    fc.assert(
      fc.property(spelledMessage, ({ text, value: sent }) => {
        const { body: bytes, type } = accepted(Buffer.from(text))
        const body = parseBody(bytes.toString())
        const kept = Object.keys(sent).filter((key) => !isReplaced(key, own(sent, key), type))
        expect(kept.map((key) => JSON.stringify(own(body, key)))).toEqual(
          kept.map((key) => JSON.stringify(own(sent, key))),
        )
      }),
      runs,
    )
  })

  test('holds no field that neither the producer sent nor the form asks for', () => {
    const added = new Set(
      'version,timestamp,messageId,context,userId,previousId,User ID,Previous ID'.split(','),
    )
    fc.assert(
      fc.property(spelledMessage, ({ text, value: sent }) => {
        const { body: bytes, type } = accepted(Buffer.from(text))
        const others = Object.keys(parseBody(bytes.toString())).filter(
          (key) => !Object.hasOwn(sent, key) && !added.has(key) && key !== attributesFields[type],
        )
        expect(others).toEqual([])
      }),
      runs,
    )
  })

  test('has an object for what its kind is about', () => {
    fc.assert(
      fc.property(spelledMessage, ({ text }) => {
        const { body, type } = accepted(Buffer.from(text))
        const attributes = own(parseBody(body.toString()), attributesFields[type] ?? 'context')
        expect(Object.prototype.toString.call(attributes)).toBe('[object Object]')
      }),
      runs,
    )
  })

  test('enters again as itself, from wherever it is read', () => {
    fc.assert(
      fc.property(spelledMessage, ({ text }) => {
        const { body } = accepted(Buffer.from(text))
        expect(accepted(body, elsewhere).body.toString()).toBe(body.toString())
      }),
      runs,
    )
  })
})

test('entering a message pollutes no prototype', () => {
  const before = Reflect.ownKeys(Object.prototype)
  fc.assert(
    fc.property(spelledMessage, ({ text }) => {
      accepted(Buffer.from(text))
      expect(Reflect.ownKeys(Object.prototype)).toEqual(before)
      expect('polluted' in {}).toBe(false)
    }),
    runs,
  )
})

test('a number that would silently become null is refused wherever it is, and nothing else is', () => {
  const tooLarge = fc.constantFrom('1e400', '-1E+309', '9'.repeat(310))
  const place = fc.constantFrom(
    (value: string) => value,
    (value: string) => `[[null,${value}]]`,
    (value: string) => `{"__proto__":{"a":[${value}]}}`,
    (value: string) => `{"a":{"a":1},"b":null,"c":${value}}`,
  )
  fc.assert(
    fc.property(
      fc.oneof(
        spelledJson.map(({ text }) => text),
        tooLarge,
      ),
      place,
      (text, put) => {
        const result = enter(Buffer.from(`{"type":"page","userId":"u","x":${put(text)}}`), origin)
        const isTooLarge = !Number.isFinite(Number(text)) && /^-?[1-9][E+\d]*$/i.test(text)
        expect(result.ok ? undefined : result.reason).toBe(isTooLarge ? 'number_out_of_range' : undefined)
      },
    ),
    runs,
  )
})

/**
 * Returns true if the value is accepted, or refused for a reason of the list. Lets through what `enter`
 * throws.
 */
function isSettled(value: Uint8Array): boolean {
  const result = enter(value, origin)
  return result.ok || refusalReasons.includes(result.reason)
}

describe('entering does not throw, and refuses for a reason of the list,', () => {
  test('on arbitrary bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        expect(isSettled(bytes)).toBe(true)
      }),
      runs,
    )
  })

  test('on a message with a few bytes replaced', () => {
    const edit = fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 }))
    const edits = fc.array(edit, { minLength: 1, maxLength: 3 })
    fc.assert(
      fc.property(spelledMessage, edits, ({ text }, replaced) => {
        const bytes = Buffer.from(text)
        for (const [at, byte] of replaced) bytes[at % bytes.length] = byte
        expect(isSettled(bytes)).toBe(true)
      }),
      runs,
    )
  })

  test('on known fields of any type', () => {
    const anything = fc.oneof(
      spelledJson.map(({ text }) => text),
      fc.constantFrom('""', '"x"', '[]', '{}', 'null', '5'),
    )
    const ids = ['userId', 'anonymousId', 'previousId', 'User ID', 'Previous ID', 'groupId', 'messageId']
    const others = ['event', 'timestamp', 'context', 'integrations', 'properties', 'traits', 'version']
    const field = fc.constantFrom(...ids, ...others)
    const members = fc.array(fc.tuple(field, anything), { maxLength: 8 })
    fc.assert(
      fc.property(fc.constantFrom(...messageKinds), members, (type, fields) => {
        const rest = fields.map(([name, value]) => `,"${name}":${value}`).join('')
        expect(isSettled(Buffer.from(`{"type":"${type}"${rest}}`))).toBe(true)
      }),
      runs,
    )
  })
})
