import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { messageAt } from '../../../../bench/support/messages.ts'
import { AddressContexts } from '../../../../src/gateway/messages/address-contexts.ts'
import { RequestWork } from '../../../../src/gateway/messages/request-work.ts'
import { scanBatch, type Scanned, scanSingle } from '../../../../src/gateway/messages/scan-body.ts'
import { type CallSetting, readCall } from '../../../../src/gateway/calls/tracking-call.ts'
import { defaultLimits, type MessageLimits } from '../../../../src/message/limits.ts'
import { parsedBody } from '../../../support/parsed-body.ts'
import { spelledJson, spelledMessage } from '../../message/json-text.ts'
import type { Call } from '../../../../src/gateway/messages/item.ts'

const now = () => Date.parse('2026-03-01T12:00:00.000Z')
const runs = { numRuns: 3_000 }

function settingOf(limits: MessageLimits): CallSetting {
  return { limits, now, addressContexts: new AddressContexts(limits) }
}

type Around = { readonly ip?: string | undefined; readonly limits?: MessageLimits }

const noWork = new RequestWork(0, 0)

function scan(bytes: Buffer, call: Call, limits: MessageLimits): Scanned {
  return call === 'batch' ? scanBatch(bytes, limits, noWork) : scanSingle(bytes, limits, noWork)
}

/**
 * Returns everything that a call makes of a body. This is either what refuses the body, or the result and the
 * text of each message.
 */
function meaning(read: Scanned, call: Call, { ip, limits = defaultLimits }: Around): unknown {
  if (!read.ok) return read
  const called = readCall(call, read, { client: { ip }, work: noWork }, settingOf(limits))
  if (!called.ok) return called
  const { items, lostDigits, surroundings } = called
  const checked = Array.from({ length: items.length }, (_, index) => {
    const outcome = items.check(index, surroundings)
    if (!outcome.ok) return { ...outcome, messageId: items.outlineAt(index)?.['messageId'] }
    return { ...outcome, value: withoutMadeId(String(outcome.value), outcome.givenId) }
  })
  return { checked, lostDigits, writeKey: read.body['writeKey'] }
}

/** Replaces a `messageId` that the gateway made, because it is different each time. */
function withoutMadeId(text: string, givenId: string | undefined): string {
  return givenId === undefined ? text.replace(/"messageId":"[\da-f-]{36}"/, '"messageId":"made"') : text
}

/**
 * Returns what the gateway makes of a body, and what parsing makes of it. If there are several lists, the
 * numbers that lost digits aren't compared.
 */
function bothWays(text: string | Buffer, call: Call, around: Around): { scanned: unknown; parsed: unknown } {
  const { limits = defaultLimits } = around
  const scanned = scan(Buffer.from(text), call, limits)
  const parsed = parsedBody(Buffer.from(text), call === 'batch')
  const hasLists = (String(text).match(/"b(?:a|\\u0061)tch"/g) ?? []).length > 1
  const comparable = (read: Scanned): Scanned => (read.ok && hasLists ? { ...read, lostDigits: 0 } : read)
  return {
    scanned: meaning(comparable(scanned), call, around),
    parsed: meaning(comparable(parsed), call, around),
  }
}

/** Mends the commas between messages, which a scan overlooks if there are too many or too few. */
function withMendedCommas(text: string): string {
  return text
    .replaceAll(/\}[\s,]*\{/g, '},{')
    .replaceAll(/\[[\s,]+/g, '[')
    .replaceAll(/[\s,]+\]/g, ']')
}

/** Tells for each body whether both ways have the same result. Counts the bodies with a message. */
class Agreement {
  taken = 0

  of(text: string | Buffer, call: Call, around: Around): boolean {
    const { scanned, parsed } = bothWays(text, call, around)
    if (JSON.stringify(scanned).includes('"checked":[{')) this.taken++
    if (isDeepStrictEqual(scanned, parsed)) return true
    const mended = withMendedCommas(String(text))
    return call === 'batch' && isDeepStrictEqual(scanned, bothWays(mended, call, around).parsed)
  }
}

/** Tells for each message of a body whether it is completed from its bytes. */
function shortMessages(
  text: string | Buffer,
  call: Call = 'batch',
  { ip, limits = defaultLimits }: Around = {},
): readonly boolean[] {
  const scanned = scan(Buffer.from(text), call, limits)
  const called = scanned.ok && readCall(call, scanned, { client: { ip }, work: noWork }, settingOf(limits))
  if (called === false || !called.ok) return []
  const { items, surroundings } = called
  return Array.from({ length: items.length }, (_, index) => {
    const checked = items.check(index, surroundings)
    return checked.ok && Buffer.isBuffer(checked.value)
  })
}

const name = fc.constantFrom('ip', 'library', 'a', 'é漢', '__proto__', 'constructor', '7', '"\\', 'batch')
const plainName = fc.constantFrom('ip', 'library', 'a', 'é漢', '__proto__', 'constructor', 'batch')
const anyObject = fc.dictionary(name, fc.jsonValue({ maxDepth: 2 }), { noNullPrototype: true })
const plainObject = fc.dictionary(plainName, fc.constantFrom(null, 1, 'x', 'é', [], { a: { b: [1] } }))
const time = fc.constantFrom(
  '2026-03-01T11:59:59.000Z',
  '2009-11-10T23:00:00+0000',
  '2026-02-30T00:00:00Z',
  '',
  'x"',
  '\ud800',
)
const anyTime = fc.oneof(time, fc.constantFrom(null, 7, {}, []))

/** A message as JSON.stringify writes it. Each field is absent, valid or odd. */
const tidyMessage = fc
  .tuple(
    fc.record(
      {
        type: fc.constantFrom('identify', 'track', 'page', 'screen', 'group', 'alias', 'delete', 'x', 7),
        userId: fc.constantFrom('u', 'Müller', '', null, 7, 'a"b'),
        anonymousId: fc.constantFrom('a', '', null, {}),
        event: fc.constantFrom('E', '', 7),
        groupId: fc.constantFrom('g', '', null),
        previousId: fc.constant('p'),
        messageId: fc.constantFrom('m', 'é', '', null, 7, 'x'.repeat(101), 'a\nb'),
        timestamp: anyTime,
        originalTimestamp: anyTime,
        sentAt: anyTime,
        receivedAt: time,
        writeKey: fc.constantFrom('KEY', null, 7),
        version: fc.constantFrom(1, '1'),
        context: fc.oneof(plainObject, plainObject, anyObject, fc.constantFrom(null, 7)),
        integrations: fc.oneof(plainObject, fc.constantFrom(null, [], true)),
        properties: fc.oneof(plainObject, fc.constantFrom(null, 7)),
        traits: fc.oneof(plainObject, fc.constant(null)),
      },
      { requiredKeys: [] },
    ),
    fc.constant({ type: 'page', userId: 'u' }),
  )
  .chain(([own, needed]) => {
    const members = Object.entries({ ...needed, ...own })
    return fc.shuffledSubarray(members, { minLength: members.length })
  })
  .map((members) => JSON.stringify(Object.fromEntries(members)))

const odd = fc.constantFrom(
  '7',
  'null',
  '"x"',
  '[]',
  '{}',
  '{"a":NaN}',
  '{"type":"page","userId":"u","n":1e999}',
)
const message = fc.oneof(
  { weight: 6, arbitrary: tidyMessage },
  { weight: 2, arbitrary: spelledMessage.map(({ text }) => text) },
  { weight: 1, arbitrary: odd },
)
const space = fc.constantFrom('', '', '', ' ', '\n\t')

const bodyMember = fc.oneof(
  anyTime.map((sentAt) => `"sentAt":${JSON.stringify(sentAt)}`),
  plainObject.map((context) => `"context":${JSON.stringify(context)}`),
  anyObject.map((context) => `"context":${JSON.stringify(context)}`),
  plainObject.map((integrations) => `"integrations":${JSON.stringify(integrations)}`),
  spelledJson.map(({ text }) => `"x":${text}`),
  fc.constantFrom(
    '"writeKey":"KEY"',
    '"context":null',
    '"integrations":[]',
    '"n":12345678901234567',
    '"context":{"n":1e999}',
    '"batch":[]',
    '"b\\u0061tch":7',
    '"s":"\\"batch\\":["',
    '"broken":[}',
  ),
)

const batch = fc
  .tuple(
    fc.array(message, { maxLength: 4 }),
    fc.array(bodyMember, { maxLength: 3 }),
    fc.array(bodyMember, { maxLength: 2 }),
    space,
  )
  .map(([items, before, after, gap]) => {
    const list = `"batch"${gap}:${gap}[${gap}${items.join(`${gap},${gap}`)}${gap}]`
    return `${gap}{${gap}${[...before, list, ...after].join(`${gap},${gap}`)}${gap}}${gap}`
  })

const ips = fc.constantFrom(undefined, '203.0.113.7')
const call = fc.constantFrom('identify', 'track', 'page', 'screen', 'group', 'alias')

/**
 * The least number of bodies that must have a message. If fewer had one, the property would prove little.
 */
const leastTaken = runs.numRuns / 10

describe('a body that is scanned comes to what it comes to when it is parsed:', () => {
  test('a batch', () => {
    const agreement = new Agreement()
    fc.assert(
      fc.property(batch, ips, (text, from) => {
        expect(agreement.of(text, 'batch', { ip: from })).toBe(true)
      }),
      runs,
    )
    expect(agreement.taken).toBeGreaterThan(leastTaken)
  })

  test('a single message', () => {
    const agreement = new Agreement()
    fc.assert(
      fc.property(message, call, ips, (text, kind, from) => {
        expect(agreement.of(text, kind, { ip: from })).toBe(true)
      }),
      runs,
    )
    expect(agreement.taken).toBeGreaterThan(leastTaken)
  })

  test('a batch with bytes changed', () => {
    const agreement = new Agreement()
    const changes = fc.array(fc.tuple(fc.nat(2_500), fc.nat(255)), { maxLength: 3 })
    fc.assert(
      fc.property(fc.nat(99), changes, ips, (index, changed, from) => {
        const bytes = Buffer.from(
          `{"batch":[${String(messageAt(index))},${String(messageAt(index + 1))}],"context":{"ip":"::1","b":"é"}}`,
        )
        for (const [at, byte] of changed) bytes[at] = byte
        expect(agreement.of(bytes, 'batch', { ip: from })).toBe(true)
      }),
      runs,
    )
    expect(agreement.taken).toBeGreaterThan(leastTaken)
  })

  test('a batch that meets its limits', () => {
    const agreement = new Agreement()
    const limits: MessageLimits = { maxBytes: 400, maxDepth: 4, maxKeys: 24 }
    fc.assert(
      fc.property(batch, ips, (text, from) => {
        expect(agreement.of(text, 'batch', { ip: from, limits })).toBe(true)
      }),
      runs,
    )
    expect(agreement.taken).toBeGreaterThan(leastTaken)
  })
})

const track = '{"type":"track","userId":"u","event":"E","messageId":"m","timestamp":"2026-03-01T11:00:00Z"}'

describe('damage between messages costs none of them:', () => {
  const [one, other] = [track, track.replace('"m"', '"n"')]
  const whole = bothWays(`{"batch":[${one},${other}]}`, 'batch', {}).parsed
  test.each([
    `{"batch":[${one},,${other}]}`,
    `{"batch":[,${one}, , ,${other}]}`,
    `{"batch":[${one}${other}]}`,
    `{"batch":[${one}\n${other},]}`,
    `{"batch":[ , ${one}${other} ,, ] , "context":{}}`,
  ])('%s', (text) => {
    expect(bothWays(text, 'batch', {}).scanned).toEqual(whole)
  })

  test.each([
    ['a value that is no message', `{"batch":[${one} 7]}`],
    ['a colon', `{"batch":[${one}:${other}]}`],
    ['damage in a message', `{"batch":[${one.replace(',', ',,')},${other}]}`],
    ['a list without an end', `{"batch":[${one},`],
    ['hundreds of commas', `{"batch":[${','.repeat(500)}${one}]}`],
    ['commas between other members', `{"batch":[${one}],,"context":{}}`],
  ])('but not %s', (_, text) => {
    expect(bothWays(text, 'batch', {}).scanned).toEqual({ ok: false, fault: 'not_json' })
  })
})
const withContext = track.replace('}', ',"context":{"a":1,"ip":"::1","b":{"ip":2}}}')

describe('the short way is taken by', () => {
  test.each<[string, string, Call]>([
    ['a batch', `{"batch":[${track},${withContext}],"sentAt":"2026-03-01T12:00:01Z"}`, 'batch'],
    ['a batch in lines', `{\n "sentAt": null,\n "batch": [\n${track},\n${track}\n]\n}\n`, 'batch'],
    ['messages that override a context', `{"context":{"b":1,"c":2,"a":3},"batch":[${withContext}]}`, 'batch'],
    ['messages without an id', `{"batch":[{"type":"page","anonymousId":"a"}]}`, 'batch'],
    ['a single message', track, 'track'],
    [
      'a single message with its key and sentAt',
      track.replace('}', ',"writeKey":"K","sentAt":"2026-03-01T12:00:01Z"}'),
      'track',
    ],
    ['a single message without its kind', '{"userId":"u","event":"E"}', 'track'],
  ])('%s', (_, text, kind) => {
    for (const ip of ['203.0.113.7', undefined]) {
      expect(shortMessages(text, kind, { ip })).not.toContain(false)
      const { scanned, parsed } = bothWays(text, kind, { ip })
      expect(scanned).toEqual(parsed)
    }
  })
})

test('a message that is not canonical is put in order where it stands, or completed from its outline', () => {
  const [spaced, longer] = ['{ "type": "page", "userId": "u" }', '{"type":"page","userId":"u","n":1e20}']
  expect(shortMessages(`{"batch":[${track},${spaced},${longer},${track}]}`)).toEqual([
    true,
    true,
    false,
    true,
  ])
})

test.each([
  ['no list', '{"batch":null}'],
  ['no batch', '{"sentAt":"x"}'],
  ['a batch that is no list', '{"batch":{"a":1},"writeKey":"K"}'],
  ['two lists', `{"batch":[${track}],"batch":[${track},{"a":NaN}]}`],
  ['a list in another spelling', `{"batch":[${track}],"b\\u0061tch":[7]}`],
  ['no end', `{"batch":[${track}]`],
  ['something after its end', `{"batch":[${track}]}x`],
  ['no JSON around its messages', `{"batch":[${track}],"context":{]}`],
  ['no JSON among its messages', `{"batch":[${track},{"a":]}`],
  ['NaN', `{"batch":[${track},{"a":NaN}]}`],
  ['NaN beside its messages', `{"batch":[${track}],"context":{"a":NaN}}`],
  ['more messages than a batch may have', `{"batch":[${Array(2_501).fill(track).join(',')}]}`],
  ['bytes that are not UTF-8', Buffer.from(`{"batch":[${track.replace('E', 'é')}]}`, 'latin1')],
  ['a byte order mark', `\ufeff{"batch":[${track}]}`],
  [
    'a number that takes more room as JSON.stringify writes it',
    `{"batch":[{"type":"page","userId":"u","n":1e20}]}`,
  ],
])('a batch with %s comes to what parsing makes of it', (_, text) => {
  const { scanned, parsed } = bothWays(text, 'batch', {})
  expect(scanned).toEqual(parsed)
})

test.each(['\\ud800', '\\udc00'])('a shared member named by half a pair (%s) is not lost', (half) => {
  const own = '{"userId":"u","type":"page","context":{"\ufffd":1}}'
  const text = `{"batch":[${own}],"context":{"${half}":2}}`
  expect(shortMessages(text)).toEqual([true])
  const { scanned, parsed } = bothWays(text, 'batch', {})
  expect(scanned).toEqual(parsed)
  expect(JSON.stringify(scanned)).toContain(JSON.stringify(`"${half}":2`).slice(1, -1))
})

test('what was scanned can not be used once another body is', () => {
  const body = Buffer.from(`{"batch":[${track}]}`)
  const scanned = scan(body, 'batch', defaultLimits)
  const called =
    scanned.ok &&
    readCall('batch', scanned, { client: { ip: undefined }, work: noWork }, settingOf(defaultLimits))
  scan(body, 'batch', defaultLimits)
  expect(() => called !== false && called.ok && called.items.check(0, called.surroundings)).toThrow(
    'another body',
  )
})

describe('a dense body with half a megabyte of white space', () => {
  const spaces = ' \n'.repeat(250_000)
  const bodies: readonly (readonly [where: string, text: string])[] = [
    ['at its start', `${spaces}{"batch":[]}`],
    ['before its list', `{"userId":"u",${spaces}"batch":[]}`],
    ['in its list', `{"batch":[${spaces}]}`],
    ['after a message', `{"batch":[{"type":"page","userId":"u"}${spaces},{"type":"page","userId":"u"}]}`],
    ['after its list', `{"batch":[]${spaces}}`],
  ]

  test.each(bodies)('%s is refused', (_, text) => {
    const bytes = Buffer.from(text)
    const scanned = scanBatch(bytes, defaultLimits, new RequestWork(1_000, bytes.length))
    expect(scanned).toEqual({ ok: false, fault: 'too_dense' })
  })

  test.each(bodies)('%s is read if it was sent without gzip', (_, text) => {
    const bytes = Buffer.from(text)
    const scanned = scanBatch(bytes, defaultLimits, new RequestWork(bytes.length, bytes.length))
    expect(scanned).toMatchObject({ ok: true })
  })
})
