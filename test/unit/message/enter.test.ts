import { describe, expect, test } from 'vitest'
import { enter, type EnterResult } from '../../../src/message/enter.ts'
import type { Entered, Origin } from '../../../src/message/entered.ts'
import { defaultLimits, type MessageLimits } from '../../../src/message/limits.ts'
import { refusalReasons, type RefusalReason } from '../../../src/message/dead-letter-reasons.ts'

const origin: Origin = {
  topic: 'sluice.events',
  partition: 3,
  offset: 42,
  timestampMs: Date.UTC(2024, 0, 2, 3, 4, 5, 6),
}
const recordTime = '2024-01-02T03:04:05.006Z'
const madeId = 'sluice.events-3-42'

function enterText(text: string, from: Origin = origin): EnterResult {
  return enter(Buffer.from(text), from)
}

function accepted(result: EnterResult): Entered {
  if (!result.ok) throw new Error(`refused: ${result.reason}`)
  return result.message
}

const entered = (message: object): Entered => accepted(enterText(JSON.stringify(message)))
const body = (message: object): string => entered(message).body.toString()
const sent = (message: object): Record<string, unknown> => JSON.parse(body(message))
const reason = (result: EnterResult): RefusalReason | undefined => (result.ok ? undefined : result.reason)
const page = { type: 'page', userId: 'u' }

describe('each kind is sent in the shape of the seed', () => {
  test('page', () => {
    const properties = { path: '/a', referrer: '', title: 'A', url: 'https://example.com/a' }
    expect(body({ type: 'page', userId: 'u', properties, timestamp: '2012-12-02T00:30:08.276Z' })).toBe(
      '{"version":1,"type":"page","userId":"u",' +
        '"properties":{"path":"/a","referrer":"","title":"A","url":"https://example.com/a"},' +
        '"timestamp":"2012-12-02T00:30:08.276Z","messageId":"sluice.events-3-42","context":{}}',
    )
  })

  test('screen', () => {
    const context = {
      device: { model: 'iPhone7,2', type: 'ios' },
      os: { name: 'iOS', version: '8.1.3' },
      app: { build: '3.0.1.545', name: 'Shop', version: '545' },
    }
    expect(JSON.parse(body({ context, type: 'screen', userId: 'u', name: 'Home' }))).toEqual({
      version: 1,
      type: 'screen',
      userId: 'u',
      name: 'Home',
      context,
      timestamp: recordTime,
      messageId: madeId,
      properties: {},
    })
  })

  test('identify', () => {
    expect(body({ type: 'identify', userId: 'u', traits: { email: 'a@example.com' } })).toBe(
      '{"version":1,"type":"identify","userId":"u","traits":{"email":"a@example.com"},' +
        `"timestamp":"${recordTime}","messageId":"${madeId}","context":{}}`,
    )
  })

  test('track', () => {
    expect(body({ type: 'track', anonymousId: 'a', event: 'Signed Up', properties: { plan: 'Pro' } })).toBe(
      '{"version":1,"type":"track","anonymousId":"a","event":"Signed Up","properties":{"plan":"Pro"},' +
        `"timestamp":"${recordTime}","messageId":"${madeId}","context":{}}`,
    )
  })

  test('alias, with both spellings of both ids', () => {
    expect(body({ type: 'alias', previousId: 'old', userId: 'new' })).toBe(
      '{"version":1,"type":"alias","previousId":"old","userId":"new",' +
        `"timestamp":"${recordTime}","messageId":"${madeId}","context":{},"User ID":"new","Previous ID":"old"}`,
    )
  })

  test('group', () => {
    expect(body({ type: 'group', userId: 'u', groupId: 'g', traits: { name: 'Initech' } })).toBe(
      '{"version":1,"type":"group","userId":"u","groupId":"g","traits":{"name":"Initech"},' +
        `"timestamp":"${recordTime}","messageId":"${madeId}","context":{}}`,
    )
  })

  test('delete, without a version', () => {
    expect(body({ type: 'delete', userId: 'u', messageId: 'delete-1' })).toBe(
      `{"type":"delete","userId":"u","messageId":"delete-1","timestamp":"${recordTime}","context":{}}`,
    )
  })
})

describe('what is added', () => {
  test('a version that the producer sent as a number stays', () => {
    expect(sent({ ...page, version: 2 })['version']).toBe(2)
  })

  test('a version that is no number becomes 1', () => {
    expect(sent({ ...page, version: '1.1' })['version']).toBe(1)
  })

  test.each([null, ''])('a messageId of %j is absent', (messageId) => {
    expect(entered({ ...page, messageId }).messageId).toBe(madeId)
  })

  test('a made messageId keeps partition and offset when the name of the topic is too long', () => {
    const { messageId } = accepted(enterText(JSON.stringify(page), { ...origin, topic: 't'.repeat(249) }))
    expect(messageId).toMatch(/^t+-3-42$/)
    expect(messageId).toHaveLength(100)
  })

  test('a null context becomes an object', () => {
    expect(sent({ ...page, context: null })['context']).toEqual({})
  })

  test.each(['track', 'page', 'screen'])(
    '%s has properties, an object also where they are absent or null',
    (type) => {
      const message = { type, userId: 'u', event: 'e' }
      expect(sent(message)['properties']).toEqual({})
      expect(sent({ ...message, properties: null })['properties']).toEqual({})
      expect(sent({ ...message, properties: { a: 1 } })['properties']).toEqual({ a: 1 })
      expect(sent(message)).not.toHaveProperty('traits')
      expect(sent({ ...message, traits: null })['traits']).toBeNull()
    },
  )

  test.each(['identify', 'group'])('%s has traits, an object also where they are absent or null', (type) => {
    const message = { type, userId: 'u', groupId: 'g' }
    expect(sent(message)['traits']).toEqual({})
    expect(sent({ ...message, traits: null })['traits']).toEqual({})
    expect(sent({ ...message, traits: { a: 1 } })['traits']).toEqual({ a: 1 })
    expect(sent(message)).not.toHaveProperty('properties')
  })

  test.each(['', 'a', [], 5, true])('properties and traits of %j are refused, with what to send', (given) => {
    const properties = enterText(JSON.stringify({ ...page, properties: given }))
    expect(properties).toMatchObject({
      reason: 'properties_not_object',
      detail: expect.stringContaining('as an object'),
    })
    const traits = enterText(JSON.stringify({ type: 'identify', userId: 'u', traits: given }))
    expect(traits).toMatchObject({
      reason: 'traits_not_object',
      detail: expect.stringContaining('as an object'),
    })
  })

  test('an alias and a delete have neither', () => {
    for (const message of [
      { type: 'alias', userId: 'u', previousId: 'v' },
      { type: 'delete', userId: 'u' },
    ]) {
      expect(sent(message)).not.toHaveProperty('properties')
      expect(sent(message)).not.toHaveProperty('traits')
    }
  })

  test.each([null, ''])('a timestamp of %j is absent: the time of the record is sent', (timestamp) => {
    expect(sent({ ...page, timestamp })['timestamp']).toBe(recordTime)
  })

  test.each([
    ['2009-11-10T23:00:00.123Z', '2009-11-10T23:00:00.123Z'],
    ['2009-11-10T23:00:00+0000', '2009-11-10T23:00:00.000Z'],
    ['2009-11-10T23:00:00.123456789-01:00', '2009-11-11T00:00:00.123Z'],
    ['2016-12-31T23:59:60.000Z', '2017-01-01T00:00:00.000Z'],
  ])('a timestamp %s is sent as %s', (timestamp, expected) => {
    expect(sent({ ...page, timestamp })['timestamp']).toBe(expected)
  })

  test('an alias may come in the spelling that receivers get', () => {
    const alias = { type: 'alias', 'Previous ID': 'old', 'User ID': 'new' }
    expect(sent(alias)).toMatchObject({ previousId: 'old', userId: 'new' })
  })

  test('an alias with both spellings keeps them', () => {
    const alias = { type: 'alias', previousId: 'a', 'Previous ID': 'b', userId: 'c', 'User ID': 'd' }
    expect(sent(alias)).toMatchObject(alias)
  })
})

describe('what a worker reads beside the body', () => {
  test('type, id and integrations', () => {
    const integrations = { All: false, Webhooks: true }
    expect(entered({ ...page, messageId: 'm', integrations })).toMatchObject({
      type: 'page',
      messageId: 'm',
      isIdGiven: true,
      integrations,
    })
  })

  test('a messageId that is made is not one that was given', () => {
    expect(entered(page)).toMatchObject({ messageId: madeId, isIdGiven: false })
  })

  test('null integrations are none', () => {
    expect(entered({ ...page, integrations: null }).integrations).toBeUndefined()
  })
})

describe('how the bytes are read and written', () => {
  test('numbers, keys, escapes and spaces come out as JSON.stringify writes them', () => {
    const spelled =
      ' { "type":"page", "userId":"\\u0041", "n":[1.0, 1e3, 1e21, -0, 12345678901234567890],\n' +
      '"o":{"b":1,"10":1,"9":2,"b":3,"__proto__":{"x":"\\ud800"},"\\u0063":"\\/"} } '
    expect(accepted(enterText(spelled)).body.toString()).toBe(
      '{"version":1,"type":"page","userId":"A","n":[1,1000,1e+21,0,12345678901234567000],' +
        '"o":{"9":2,"10":1,"b":3,"__proto__":{"x":"\\ud800"},"c":"/"},' +
        `"timestamp":"${recordTime}","messageId":"${madeId}","context":{},"properties":{}}`,
    )
  })

  test('a field named __proto__ is sent, and is not the prototype', () => {
    const { body: bytes } = accepted(enterText('{"type":"page","userId":"u","__proto__":{"admin":true}}'))
    expect(bytes.toString()).toContain('"__proto__":{"admin":true}')
  })

  test('a byte order mark is taken off', () => {
    expect(entered(page).body).toEqual(accepted(enterText(`\ufeff${JSON.stringify(page)}`)).body)
  })

  test('a plain Uint8Array is read like a Buffer', () => {
    expect(reason(enter(new TextEncoder().encode(JSON.stringify(page)), origin))).toBeUndefined()
  })
})

const levels = 100_000
const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 0]))
const text = (message: object) => JSON.stringify(message)
const track = { type: 'track', userId: 'u' }

const refused: [RefusalReason, string, string | Uint8Array | null][] = [
  ['empty_value', 'a null value', null],
  ['empty_value', 'no bytes', ''],
  ['not_utf8', 'Latin-1', Buffer.from('{"type":"page","userId":"é"}', 'latin1')],
  ['not_utf8', 'an encoded lone surrogate', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
  ['not_json', 'half an object', '{"type":'],
  ['not_json', 'NaN, as Python writes it', '{"type":"page","userId":"u","n":NaN}'],
  ['not_json', 'two objects', '{}{}'],
  ['not_json', 'two byte order marks', `\ufeff\ufeff${text(page)}`],
  ['not_an_object', 'an array', '[]'],
  ['not_an_object', 'null', 'null'],
  ['not_an_object', 'a string', '"page"'],
  ['unknown_type', 'no type', '{"userId":"u"}'],
  ['unknown_type', 'a type in capitals', text({ ...page, type: 'Page' })],
  ['unknown_type', 'a type that every object has', text({ ...page, type: 'constructor' })],
  ['unknown_type', 'a type that is no string', text({ ...page, type: ['page'] })],
  ['no_user_anon_id', 'identify without ids', text({ type: 'identify' })],
  ['no_user_anon_id', 'track without ids', text({ type: 'track', event: 'e' })],
  ['no_user_anon_id', 'page without ids', text({ type: 'page' })],
  ['no_user_anon_id', 'screen without ids', text({ type: 'screen' })],
  ['no_user_anon_id', 'group without ids', text({ type: 'group', groupId: 'g' })],
  [
    'no_user_anon_id',
    'alias with an anonymousId only',
    text({ type: 'alias', previousId: 'p', anonymousId: 'a' }),
  ],
  ['no_user_anon_id', 'delete with an anonymousId only', text({ type: 'delete', anonymousId: 'a' })],
  ['no_user_anon_id', 'delete with an empty userId', text({ type: 'delete', userId: '' })],
  ['no_user_anon_id', 'empty ids', text({ type: 'page', userId: '', anonymousId: null })],
  ['no_user_anon_id', 'ids as fields of __proto__', '{"type":"page","__proto__":{"userId":"u"}}'],
  ['no_previous_id', 'alias without previousId', text({ type: 'alias', userId: 'u' })],
  ['no_previous_id', 'alias with an empty previousId', text({ type: 'alias', userId: 'u', previousId: '' })],
  ['id_not_string', 'a number for a userId', text({ type: 'page', userId: 5 })],
  ['id_not_string', 'a number beside a good id', text({ type: 'page', userId: 'u', anonymousId: 5 })],
  ['id_not_string', 'a number for a groupId', text({ type: 'group', userId: 'u', groupId: 5 })],
  ['id_not_string', 'a number for a previousId', text({ type: 'alias', userId: 'u', previousId: 5 })],
  ['id_not_string', 'a number for a Previous ID', text({ type: 'alias', userId: 'u', 'Previous ID': 5 })],
  ['event_not_defined', 'track without event', text(track)],
  ['event_not_defined', 'an empty event', text({ ...track, event: '' })],
  ['event_not_defined', 'a null event', text({ ...track, event: null })],
  ['event_not_string', 'a number for an event', text({ ...track, event: 5 })],
  ['group_id_not_defined', 'group without groupId', text({ type: 'group', userId: 'u' })],
  ['group_id_not_defined', 'a null groupId', text({ type: 'group', userId: 'u', groupId: null })],
  ['properties_not_object', 'an array for properties', text({ ...track, event: 'e', properties: [] })],
  ['properties_not_object', 'a string for properties of a page', text({ ...page, properties: 'p' })],
  ['traits_not_object', 'a string for traits', text({ type: 'identify', userId: 'u', traits: 't' })],
  [
    'traits_not_object',
    'an array for traits',
    text({ type: 'group', userId: 'u', groupId: 'g', traits: [] }),
  ],
  ['context_not_object', 'a string for a context', text({ ...page, context: 'c' })],
  ['context_not_object', 'an array for a context', text({ ...page, context: [] })],
  ['integrations_not_object', 'an array for integrations', text({ ...page, integrations: ['Webhooks'] })],
  ['bad_timestamp', 'a word', text({ ...page, timestamp: 'today' })],
  ['bad_timestamp', 'a number', text({ ...page, timestamp: 1_700_000_000 })],
  [
    'bad_timestamp',
    'a day that is not in the calendar',
    text({ ...page, timestamp: '2023-02-29T00:00:00Z' }),
  ],
  ['message_id_not_string', 'a number for a messageId', text({ ...page, messageId: 5 })],
  ['message_id_too_long', 'a messageId of 101 characters', text({ ...page, messageId: 'm'.repeat(101) })],
  ['number_out_of_range', '1e400', '{"type":"page","userId":"u","n":1e400}'],
  ['number_out_of_range', 'minus 1e400 in a list', '{"type":"page","userId":"u","n":[null,[-1e400]]}'],
  [
    'nested_too_deep',
    'a hundred thousand levels of arrays',
    `{"type":"page","userId":"u","n":${'['.repeat(levels)}${']'.repeat(levels)}}`,
  ],
  [
    'nested_too_deep',
    'a hundred thousand levels of objects',
    `{"type":"page","userId":"u","n":${'{"a":'.repeat(levels)}null${'}'.repeat(levels)}}`,
  ],
  ['too_many_keys', 'ten thousand and one keys', text({ ...page, n: keys(9_996) })],
  ['too_many_keys', 'as many in objects of an array', text({ ...page, n: [keys(5_000), keys(4_996)] })],
  ['body_too_large', 'a mebibyte and a byte', text({ ...page, n: 'n'.repeat(1_048_576 - 36) })],
  ['body_too_large', 'spaces', `${text(page)}${' '.repeat(1_048_576)}`],
  [
    'body_too_large',
    'numbers that take more room written out',
    `{"type":"page","userId":"u","n":[${'1e20,'.repeat(100_000)}1]}`,
  ],
]

describe('refused', () => {
  test.each(refused)('as %s: %s', (expected, _what, value) => {
    const result = enter(typeof value === 'string' ? Buffer.from(value) : value, origin)
    expect(reason(result)).toBe(expected)
  })

  test('as bad_timestamp: no timestamp, on a record whose own can not be written', () => {
    expect(reason(enterText(text(page), { ...origin, timestampMs: 9e15 }))).toBe('bad_timestamp')
  })

  test('there is an example of every reason', () => {
    expect(new Set(refused.map(([expected]) => expected))).toEqual(new Set(refusalReasons))
  })

  test('with one sentence that quotes nothing of the message', () => {
    const secret = 'hunter2'
    const result = enterText(text({ type: secret, userId: secret, [secret]: secret }))
    expect(result).toMatchObject({ ok: false, detail: expect.stringMatching(/^[A-Z][^.]*\.$/) })
    expect(JSON.stringify(result)).not.toContain(secret)
  })
})

test('a messageId of 100 characters is accepted, whatever they take in UTF-16', () => {
  expect(entered({ ...page, messageId: '😀'.repeat(100) }).messageId).toBe('😀'.repeat(100))
})

function within(message: object, limits: Partial<MessageLimits>): RefusalReason | undefined {
  return reason(enter(Buffer.from(text(message)), origin, { ...defaultLimits, ...limits }))
}

describe('the limits are up to the caller', () => {
  test('bytes, as they are written out', () => {
    const { body: bytes } = entered(page)
    expect(within(page, { maxBytes: bytes.length })).toBeUndefined()
    expect(within(page, { maxBytes: bytes.length - 1 })).toBe('body_too_large')
  })

  test('levels, the message being the first', () => {
    const deep = { ...page, properties: { a: [{ b: [] }] } }
    expect(within(deep, { maxDepth: 5 })).toBeUndefined()
    expect(within(deep, { maxDepth: 4 })).toBe('nested_too_deep')
  })

  test('keys, those that entering adds included', () => {
    const message = { ...page, properties: { a: [{ b: 1 }, { b: 2 }] } }
    expect(within(message, { maxKeys: 10 })).toBeUndefined()
    expect(within(message, { maxKeys: 9 })).toBe('too_many_keys')
  })

  test('the details name them', () => {
    const limits = { maxBytes: 2_000, maxDepth: 7, maxKeys: 123 }
    const detail = (message: object) => {
      const result = enter(Buffer.from(text(message)), origin, limits)
      return result.ok ? '' : result.detail
    }
    expect(detail({ ...page, n: 'n'.repeat(2_000) })).toContain(' 2000 bytes')
    expect(detail({ ...page, n: [[[[[[[]]]]]]] })).toContain(' 7 levels')
    expect(detail({ ...page, n: keys(123) })).toContain(' 123 keys')
  })
})

test('all that a message of the default size may hold is delivered', () => {
  const deep = `${'['.repeat(99)}${']'.repeat(99)}`
  const large = text({ ...page, n: keys(9_990) }).replace(/}$/, `,"d":${deep},"s":"${'s'.repeat(900_000)}"}`)
  const result = enterText(large)
  expect(reason(result)).toBeUndefined()
  expect(accepted(enter(accepted(result).body, origin)).body).toEqual(accepted(result).body)
})
