import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { headerText } from '../../../src/message/record-headers.ts'
import {
  type RetryState,
  decodeRetryState,
  encodeRetryState,
  salvageRetryHeaders,
  undecidedMapping,
} from '../../../src/retry/retry-state.ts'
import { mappingLimits } from '../../../src/shape/limits.ts'

const state: RetryState = {
  sourceId: 'shop',
  destinationId: 'crm',
  messageId: 'm-1',
  kind: 'track',
  nextRung: 2,
  waits: 2,
  attempts: 1,
  firstSeenMs: 1_700_000_000_000,
  expiresAtMs: 1_700_014_400_000,
  failedHooks: ['a', 'b.c-d_e'],
  unsentHooks: ['c'],
  notBeforeMs: new Map([['f', 1_700_000_060_000]]),
  hookContents: new Map([
    ['a', '0123456789ab'],
    ['f', 'fedcba987654'],
  ]),
  lastOutcome: 'status 503',
  origin: { topic: 'sluice.events', partition: 3, offset: 42 },
  property: { userId: 'u1', spaceId: 'shop', property: 'big_spenders', since: '1700000000000/1/3/7' },
  isUncertain: true,
  isDelivered: true,
  isUnjudged: true,
  replayJob: '20260723-101500-3f9a2c',
  mapping: '{"method":"PUT"}',
}
const good = encodeRetryState(state)
const names = Object.keys(good)
const optional = new Set([
  'failed-hooks',
  'unsent-hooks',
  'not-before',
  'hook-contents',
  'waits',
  'last-outcome',
  'property',
  'since',
  'uncertain',
  'delivered',
  'replay-job',
  'mapping',
  'unjudged',
])
/** The headers that are whole numbers, or 1. */
const numbers = [
  'rung',
  'waits',
  'attempts',
  'first-seen',
  'expires-at',
  'uncertain',
  'delivered',
  'unjudged',
]
const required = names.filter((name) => !optional.has(name))
/** The room for headers in the records of retry topics, in bytes. `maxRetryRecordBytes` includes it. */
const headersBytes = 64 * 1024

type Headers = Parameters<typeof decodeRetryState>[0]

function detailOf(headers: Headers): string {
  const decoded = decodeRetryState(headers)
  return decoded.ok ? '' : decoded.detail
}

function sizeOf(headers: Record<string, string>): number {
  return Object.entries(headers).reduce(
    (sum, [name, value]) => sum + name.length + Buffer.byteLength(value) + 10,
    0,
  )
}

const id = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/)
const count = fc.maxSafeNat()
/** Ids with any characters, including control characters and halves of surrogate pairs. */
const anyId = fc.string({ unit: 'binary', minLength: 1, maxLength: 100 })
const anyRetryState: fc.Arbitrary<RetryState> = fc.record({
  sourceId: id,
  destinationId: id,
  messageId: fc.string({ unit: 'grapheme', maxLength: 100 }),
  kind: fc.constantFrom('track', 'delete'),
  nextRung: count,
  waits: count,
  attempts: count,
  firstSeenMs: count,
  expiresAtMs: count,
  unsentHooks: fc.array(id, { maxLength: 5 }),
  failedHooks: fc.array(id, { maxLength: 6 }),
  notBeforeMs: fc.array(fc.tuple(id, count), { maxLength: 6 }).map((entries) => new Map(entries)),
  lastOutcome: fc.string({ unit: 'grapheme', maxLength: 100 }),
  origin: fc.record({ topic: fc.stringMatching(/^[A-Za-z0-9._-]{1,249}$/), partition: count, offset: count }),
  property: fc.option(
    fc.record({
      userId: fc.oneof(anyId, fc.constant('\ud800')),
      spaceId: id,
      property: fc.oneof(anyId, fc.constant('\udc00')),
      since: fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 100 }),
    }),
    { nil: undefined },
  ),
  isUncertain: fc.boolean(),
  isDelivered: fc.boolean(),
  isUnjudged: fc.boolean(),
  hookContents: fc.constant(undefined),
  replayJob: fc.oneof(fc.constant(''), fc.stringMatching(/^[A-Za-z0-9-]{1,64}$/)),
})

test('what was written is read, as text or as bytes', () => {
  fc.assert(
    fc.property(anyRetryState, fc.boolean(), (sent, isBytes) => {
      const headers = encodeRetryState(sent)
      const received = Object.entries(headers).map(([name, text]) => [
        name,
        isBytes ? Buffer.from(text) : text,
      ])
      expect(decodeRetryState(Object.fromEntries(received))).toEqual({ ok: true, state: sent })
    }),
    { numRuns: 2_000 },
  )
})

test.each<[string, Partial<RetryState>]>([
  ['failed for good', { failedHooks: ['a'] }],
  ['got no request', { unsentHooks: ['a'] }],
  ['asked for a wait', { notBeforeMs: new Map([['a', 1]]) }],
])('the content of a hook that %s is carried, and no other', (_, listed) => {
  const nothing = { failedHooks: [], unsentHooks: [], notBeforeMs: new Map() }
  const hookContents = new Map([
    ['a', '0123456789ab'],
    ['b', 'fedcba987654'],
  ])
  const decoded = decodeRetryState(encodeRetryState({ ...state, ...nothing, ...listed, hookContents }))
  expect(decoded).toMatchObject({ ok: true, state: { hookContents: new Map([['a', '0123456789ab']]) } })
})

function mappingOf(changed: Partial<RetryState>): string | undefined {
  return encodeRetryState({ ...state, ...changed })['mapping']
}

describe('the mapping of the first try', () => {
  test('is carried once there was a try', () => {
    expect(mappingOf({ mapping: '{}' })).toBe('{}')
    expect(mappingOf({ mapping: '{}', attempts: 0 })).toBeUndefined()
    expect(mappingOf({ mapping: undecidedMapping })).toBe(undecidedMapping)
    expect(mappingOf({ mapping: undecidedMapping, attempts: 0 })).toBeUndefined()
    expect(mappingOf({ mapping: '' })).toBeUndefined()
  })
})

describe('beside workers of an earlier version', () => {
  const { 'hook-contents': contents, ...known } = good

  test('the lists name hooks by their ids, as those workers write and read them', () => {
    expect(known).toMatchObject({
      'failed-hooks': '["a","b.c-d_e"]',
      'unsent-hooks': '["c"]',
      'not-before': '[["f",1700000060000]]',
    })
    expect(contents).toBe('[["a","0123456789ab"],["f","fedcba987654"]]')
  })

  test('a record without contents is read', () => {
    expect(decodeRetryState(known)).toEqual({ ok: true, state: { ...state, hookContents: undefined } })
  })

  test('contents of another length, which a later version may write, are read', () => {
    const longer = [['a', 'A-Za-z0-9_'.repeat(3)]]
    expect(decodeRetryState({ ...good, 'hook-contents': JSON.stringify(longer) })).toMatchObject({ ok: true })
  })
})

test('the largest that can be carried has room in a topic', () => {
  const longId = 'i'.repeat(100)
  const ids = Array.from({ length: 125 }, (_, index) => `${index}`.padStart(100, 'h'))
  const largest = encodeRetryState({
    ...state,
    sourceId: longId,
    destinationId: longId,
    messageId: '😀'.repeat(100),
    nextRung: Number.MAX_SAFE_INTEGER,
    waits: Number.MAX_SAFE_INTEGER,
    attempts: Number.MAX_SAFE_INTEGER,
    firstSeenMs: Number.MAX_SAFE_INTEGER,
    expiresAtMs: Number.MAX_SAFE_INTEGER,
    failedHooks: ids,
    notBeforeMs: new Map(ids.map((hook) => [hook, Number.MAX_SAFE_INTEGER])),
    hookContents: new Map(ids.map((hook) => [hook, 'c'.repeat(32)])),
    lastOutcome: '漢'.repeat(5_000),
    origin: { topic: 't'.repeat(249), partition: 1_000, offset: Number.MAX_SAFE_INTEGER },
    replayJob: 'j'.repeat(64),
    mapping: 'm'.repeat(mappingLimits.bytes),
    property: {
      userId: '\u0001'.repeat(1_000),
      spaceId: longId,
      property: '\ud800'.repeat(1_000),
      since: '9'.repeat(100),
    },
  })
  expect(detailOf(largest)).toBe('')
  expect(sizeOf(largest)).toBeLessThan((headersBytes * 3) / 4)
})

test('a record from before 1970 can be carried', () => {
  expect(decodeRetryState(encodeRetryState({ ...state, firstSeenMs: -1 }))).toMatchObject({
    ok: true,
    state: { firstSeenMs: 0 },
  })
})

describe('a fault is named:', () => {
  test.each(required)('%s is missing', (name) => {
    const { [name]: _left, ...rest } = good
    expect(detailOf(rest)).toBe(`headers: ${name} is missing`)
  })

  test.each(required)('%s is null', (name) => {
    expect(detailOf({ ...good, [name]: null })).toBe(`headers: ${name} is missing`)
  })

  test.each(names)('%s is too long', (name) => {
    const larger: Record<string, number> = {
      'replay-job': 64,
      ...Object.fromEntries(numbers.map((number) => [number, 64])),
      mapping: 5_120,
      'failed-hooks': 16_384,
      'not-before': 16_384,
      'hook-contents': 1_536,
      property: 14_336,
    }
    const maxBytes = larger[name] ?? 1_024
    expect(detailOf({ ...good, [name]: Buffer.alloc(maxBytes + 1, '1') })).toBe(
      `headers: ${name} is longer than ${maxBytes} bytes`,
    )
  })

  test.each(
    ['rung', 'attempts', 'first-seen', 'expires-at'].flatMap((name) =>
      ['', ' 1', '-1', '1.5', '1e3', '0x10', 'first', '9007199254740992', '99999999999999999', '１'].map(
        (text) => [name, text] as const,
      ),
    ),
  )('%s is %j', (name, text) => {
    expect(detailOf({ ...good, [name]: text })).toBe(`headers: ${name} is not a whole number`)
  })

  test.each(['', 'x', 'a/1', 'a/1/', 'a/-1/2', 'a/1/99999999999999999999', '/1/2', 'a/1/2 ', 'a\nb/1/2'])(
    'origin is %j',
    (origin) => {
      expect(detailOf({ ...good, origin })).toBe("headers: origin can't be read")
    },
  )

  test.each([
    '',
    '{',
    '{}',
    'null',
    '"a"',
    '[1]',
    '[null]',
    '[["a"]]',
    '[""]',
    '["a b"]',
    '["é"]',
    JSON.stringify(['i'.repeat(101)]),
    JSON.stringify(Array.from({ length: 126 }, () => 'i')),
    '['.repeat(5_000),
  ])('failed-hooks is %.20j', (text) => {
    expect(detailOf({ ...good, 'failed-hooks': text })).toBe("headers: failed-hooks can't be read")
  })

  test.each([
    '',
    '{}',
    '["a"]',
    '[["a"]]',
    '[["a","1"]]',
    '[["a",1.5]]',
    '[["a",-1]]',
    '[["a",1e300]]',
    '[["a",1,2]]',
    '[[1,1]]',
    '[[{"__proto__":[]},1]]',
  ])('not-before is %j', (text) => {
    expect(detailOf({ ...good, 'not-before': text })).toBe("headers: not-before can't be read")
  })

  test.each([
    '',
    '{}',
    '["a"]',
    '[["a"]]',
    '[["a",1]]',
    '[["a",""]]',
    '[["a b","c"]]',
    '[["a","c d"]]',
    '[["a","c","d"]]',
    JSON.stringify([['a', 'c'.repeat(33)]]),
    '['.repeat(1_500),
  ])('hook-contents is %.20j', (text) => {
    expect(detailOf({ ...good, 'hook-contents': text })).toBe("headers: hook-contents can't be read")
  })

  test.each([
    '',
    '{}',
    'null',
    '"u"',
    '["u","s"]',
    '["u","s","p","x"]',
    '["u","s",1]',
    '["","s","p"]',
    '["u","","p"]',
    '["u","s",""]',
    '['.repeat(5_000),
  ])('property is %.20j', (text) => {
    expect(detailOf({ ...good, property: text })).toBe("headers: property can't be read")
  })

  test.each([
    [{ since: null }, 'since is missing'],
    [{ since: '' }, 'since is empty'],
    [{ property: null }, 'property is missing'],
    [{ uncertain: '' }, 'uncertain is not 1'],
    [{ uncertain: 'true' }, 'uncertain is not 1'],
    [{ delivered: '0' }, 'delivered is not 1'],
  ])('%j', (headers, detail) => {
    expect(detailOf({ ...good, ...headers })).toBe(`headers: ${detail}`)
  })

  test('several at once', () => {
    expect(detailOf({ rung: 'x' })).toMatch(
      /^headers: source-id is missing, .*rung is not a whole number, .*origin is missing$/,
    )
  })
})

describe('what a dead letter keeps of headers that can not be read', () => {
  test('is each that is known, as text', () => {
    const received = {
      ...good,
      rung: Buffer.from([0xff]),
      attempts: null,
      trace: 't',
      origin: ['a/1/2', 'b/1/2'],
    }
    const { attempts: _attempts, ...rest } = good
    expect(salvageRetryHeaders(received)).toEqual({ ...rest, rung: '\ufffd', origin: 'a/1/2' })
  })

  test('has room in a topic, however long they are', () => {
    const received = Object.fromEntries(names.map((name) => [name, Buffer.alloc(300_000, 0xff)]))
    expect(sizeOf(salvageRetryHeaders(received))).toBeLessThan(headersBytes)
    const cut = Object.fromEntries(names.map((name) => [name, '漢'.repeat(100_000)]))
    expect(sizeOf(salvageRetryHeaders(cut))).toBeLessThan(headersBytes)
  })

  test('is nothing of none', () => {
    expect(salvageRetryHeaders(undefined)).toEqual({})
  })
})

describe('of a header', () => {
  test.each([
    ['text', 'a', 'a'],
    ['bytes', Buffer.from('é'), 'é'],
    ['the first of several', [Buffer.from('a'), 'b'], 'a'],
    ['nothing of null', null, undefined],
    ['nothing when the first is null', [null, 'b'], undefined],
    ['nothing of none', undefined, undefined],
    ['nothing of an empty list', [], undefined],
  ])('%s is read', (_what, value, expected) => {
    expect(headerText({ a: value }, 'a')).toBe(expected)
  })
})

/** Returns the replay of a record with this header `replay-job`. */
function jobOf(name: string | Buffer): string | undefined {
  const decoded = decodeRetryState({ ...encodeRetryState(state), 'replay-job': name })
  return decoded.ok ? decoded.state.replayJob : ''
}

test('a replay whose name is no id is none: it would end in a header of a request', () => {
  for (const name of ['a b', 'x\r\nEvil: 1', 'ü', '', 'j'.repeat(65)]) expect(jobOf(name)).toBe('')
  expect(jobOf(Buffer.from('20260723-101500-3f9a2c'))).toBe('20260723-101500-3f9a2c')
})
