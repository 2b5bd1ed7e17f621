import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { messageAt } from '../../../bench/support/messages.ts'
import { enterCanonical } from '../../../src/message/canonical.ts'
import { enter } from '../../../src/message/enter.ts'
import type { Origin } from '../../../src/message/entered.ts'
import { defaultLimits, type MessageLimits } from '../../../src/message/limits.ts'
import { enterParsed, meaningOf } from '../../support/enter-parsed.ts'
import { spelledMessage } from './json-text.ts'

const origin: Origin = { topic: 'sluice.events', partition: 3, offset: 42, timestampMs: 1_700_000_000_000 }

/** Returns true if `enter` gives what parsing and writing gives. */
function agrees(bytes: Buffer): boolean {
  const entered = meaningOf(enter(bytes, origin, defaultLimits))
  return isDeepStrictEqual(entered, enterParsed(bytes, origin, defaultLimits))
}

/**
 * Returns the body of the short way, or `undefined` if it isn't taken. Expects the long way to give the same.
 */
function short(value: string | Buffer, limits: MessageLimits = defaultLimits): string | undefined {
  const bytes = Buffer.from(value)
  const message = enterCanonical(bytes, origin, limits)
  if (message === undefined) return undefined
  expect({ ok: true, message }).toEqual(enterParsed(bytes, origin, limits))
  return message.body.toString()
}

const page = (members: string): string => `{"type":"page","userId":"u"${members}}`
const sentAt = (seconds: string): string => page(`,"timestamp":"2026-02-28T23:59:${seconds}"`)
/** Names of fields that no message has. */
const key = fc.stringMatching(/^[A-C_ é](?:[a-z0-9é]{0,6})$/)
const withValue = (value: string): string => page(`,"n":${value}`)

describe('the short way', () => {
  test('and the long way say what parsing says', () => {
    fc.assert(
      fc.property(spelledMessage, ({ text }) => {
        expect(agrees(Buffer.from(text))).toBe(true)
      }),
      { numRuns: 5_000 },
    )
  })

  test.each([
    ['00.000Z'],
    ['59.999Z'],
    ['60.000Z'],
    ['5.000Z'],
    ['00.00Z'],
    ['00.0000Z'],
    ['00,000Z'],
    ['00.000z'],
    ['00.00aZ'],
    ['0a.000Z'],
    ['00.000'],
    ['00.000+00:00'],
    ['00.000Z '],
    ['é.000Z'],
    ['\\u0030.00Z'],
    [''],
  ])('gives a timestamp of the same minute as another the same meaning: %s', (rest) => {
    expect(short(sentAt('30.500Z'))).toContain('30.500Z')
    expect(agrees(Buffer.from(sentAt(rest)))).toBe(true)
    expect(short(sentAt('30.501Z'))).toContain('30.501Z')
  })

  test('is taken by what JSON.stringify wrote, if keys are names and numbers short', () => {
    const { json } = fc.letrec<{ json: unknown }>((tie) => ({
      json: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom(null, true, false, 0),
        fc.integer(),
        fc.integer({ min: -99_999_999, max: 99_999_999 }).map((cents) => cents / 100),
        fc.string({ unit: fc.constantFrom('a', ' ', '/', '"', '\\', '\n', '\t', 'é', '漢', '😀', '{', ',') }),
        fc.array(tie('json'), { maxLength: 4 }),
        fc.dictionary(key, tie('json'), { maxKeys: 4 }),
      ),
    }))
    const anything = fc.dictionary(key, json, { maxKeys: 4 })
    const optional = fc.record(
      {
        version: fc.constantFrom(1, 2.5, -3),
        messageId: fc.constantFrom('m', 'é', 'x'.repeat(100)),
        anonymousId: fc.constantFrom('', 'a', null),
        timestamp: fc.constantFrom('2009-11-10T23:00:00.000Z', '2009-11-10', '2009-11-10T23:00:00.5+01:00'),
        context: anything,
        integrations: fc.option(anything),
        properties: fc.option(anything),
        traits: fc.option(anything),
      },
      { requiredKeys: [] },
    )
    const needed = fc.record({
      type: fc.constantFrom('identify', 'track', 'page', 'screen', 'group'),
      userId: fc.constantFrom('u', 'Müller'),
      event: fc.constant('e'),
      groupId: fc.constant('g'),
    })
    const message = fc
      .tuple(needed, optional, anything)
      .map((parts): [string, unknown][] => parts.flatMap((part) => Object.entries(part)))
      .chain((members) => fc.shuffledSubarray(members, { minLength: members.length }))
    fc.assert(
      fc.property(message, (members) => {
        expect(short(JSON.stringify(Object.fromEntries(members)))).toBeDefined()
      }),
      { numRuns: 5_000 },
    )
  })

  test('and the long way say what parsing says when single bytes are changed', () => {
    const bytes = fc.nat(255)
    fc.assert(
      fc.property(
        fc.nat(199),
        fc.array(fc.tuple(fc.nat(1_023), bytes), { maxLength: 3 }),
        (index, changes) => {
          const message = messageAt(index)
          for (const [at, byte] of changes) message[at] = byte
          expect(agrees(message)).toBe(true)
        },
      ),
      { numRuns: 5_000 },
    )
  })

  test('is taken by messages as clients write them', () => {
    for (let index = 0; index < 200; index++) expect(short(messageAt(index))).toBeDefined()
  })

  test.each([
    ['no optional field', page('')],
    ['the version in its place', '{"version":2,"type":"page","userId":"u"}'],
    ['the version elsewhere', page(',"version":-1.5,"context":{}')],
    ['the type at the end', '{"userId":"u","event":"e","messageId":"m","type":"track"}'],
    ['a timestamp of another spelling', page(',"timestamp":"2009-11-10T23:00:00+01:00","a":1')],
    ['a timestamp of another spelling, the last', page(',"timestamp":"2009-11-10"')],
    [
      'all of them',
      '{"a":1,"timestamp":"2009-11-10T23:00Z","version":3,"b":"","type":"group","groupId":"g","userId":"u"}',
    ],
    ['an anonymousId beside null', '{"type":"screen","userId":null,"anonymousId":"a"}'],
    ['null where an object may be', page(',"properties":null,"traits":null,"integrations":null')],
    [
      'null in place of its properties, the last',
      '{"type":"track","event":"e","userId":"u","properties":null}',
    ],
    ['null in place of its traits, before the type', '{"traits":null,"type":"identify","userId":"u"}'],
    [
      'null in place of its traits, behind a timestamp of another spelling',
      '{"type":"group","groupId":"g","userId":"u","timestamp":"2009-11-10","traits":null,"a":1}',
    ],
    ['escapes that JSON.stringify writes', withValue('"\\"\\\\\\b\\f\\n\\r\\t"')],
    ['text beyond ASCII', withValue('"Köln 漢字 😀 \u2028 \u007f"')],
    ['nested containers', withValue('[[],{},{"a":[{"b":null}]},[true,false]]')],
    ['numbers', withValue('[0,-1,10,123456789012345,0.5,-0.000001,1.25,99999999999999.9]')],
    ['a field __proto__', page(',"__proto__":{"a":1}')],
    ['the same key in two objects', withValue('{"a":{"a":1},"b":{"a":2}}')],
  ])('is taken by a message with %s', (_, text) => {
    expect(short(text)).toBeDefined()
  })

  test.each(
    [
      [
        '1e3',
        '1.0',
        '1.50',
        '-0',
        '-0.0',
        '0.0000001',
        '1234567890123456',
        '0.1234567890123456',
        '00',
        '01',
        '-',
        '.5',
        '1.',
      ],
      ['"\\/"', '"\\u0041"', '"\\u001f"', '"\\ud800"', '"\\x"', '"\u0001"', '"\\', '"'],
      ['{"a":1,"a":2}', '{"1":1}', '{"\\n":1}', '{"a" :1}', '{"a":1,}', '{"a"}', '{a:1}', '{,}'],
      ['[1,]', '[1 ]', '[', '[1', 'nul', 'nulll', 'True', 'NaN', '', ' 1', '1 '],
    ].flat(),
  )('is not taken by the value %s', (value) => {
    expect(short(withValue(value))).toBeUndefined()
  })

  test.each([
    '',
    '{}',
    '{',
    '[]',
    'null',
    ` ${page('')}`,
    `${page('')} `,
    `\ufeff${page('')}`,
    page('').slice(0, -1),
    page(',"userId":"v"'),
    page(',"context":null'),
    page(',"context":[]'),
    page(',"properties":1'),
    page(',"integrations":[]'),
    page(',"version":"1"'),
    page(',"messageId":""'),
    page(',"messageId":null'),
    page(',"messageId":5'),
    page(',"messageId":"a\\n"'),
    page(`,"messageId":"${'m'.repeat(101)}"`),
    page(',"timestamp":""'),
    page(',"timestamp":"2024-02-30"'),
    page(',"anonymousId":5'),
    '{"type":"page","userId":""}',
    '{"type":"page","userId":5,"anonymousId":"a"}',
    '{"type":"page"}',
    '{"type":"Page","userId":"u"}',
    '{"type":"track","userId":"u"}',
    '{"type":"track","userId":"u","event":""}',
    '{"type":"group","userId":"u","groupId":null}',
    '{"type":"delete","userId":"u"}',
    '{"type":"alias","userId":"u","previousId":"v"}',
    '{"ty\\u0070e":"page","userId":"u"}',
  ])('is not taken by %s', (text) => {
    expect(short(text)).toBeUndefined()
  })

  test('is not taken by what may be over a limit', () => {
    const deep = (levels: number) => withValue('['.repeat(levels) + ']'.repeat(levels))
    const wide = (keys: number) =>
      withValue(`{${Array.from({ length: keys }, (_, i) => `"k${i}":0`).join(',')}}`)
    const tight: MessageLimits = { maxBytes: 1_000, maxDepth: 5, maxKeys: 20 }
    expect(short(deep(4), tight)).toBeDefined()
    expect(short(deep(5), tight)).toBeUndefined()
    expect(short(deep(63))).toBeDefined()
    expect(short(deep(64))).toBeUndefined()
    expect(short(wide(12), tight)).toBeDefined()
    expect(short(wide(13), tight)).toBeUndefined()
    expect(short(wide(252))).toBeDefined()
    expect(short(wide(254))).toBeUndefined()
    expect(short(withValue(`"${'x'.repeat(800)}"`), tight)).toBeDefined()
    expect(short(withValue(`"${'x'.repeat(900)}"`), tight)).toBeUndefined()
  })

  test('the body is of its own memory', () => {
    const bytes = Buffer.from(
      '{"version":1,"type":"page","userId":"u","timestamp":"2024-01-02T03:04:05.006Z","messageId":"m","context":{},"properties":{}}',
    )
    const message = enterCanonical(bytes, origin, defaultLimits)
    const before = message?.body.toString()
    expect(before).toBe(bytes.toString())
    bytes.fill(0)
    expect(message?.body.toString()).toBe(before)
  })
})
