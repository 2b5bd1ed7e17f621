import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arrivalAt, occasionOf } from '../../../../src/gateway/messages/clock.ts'
import { checkItem, type ItemContext, trackingKinds } from '../../../../src/gateway/messages/item.ts'
import { maxMessageBytes } from '../../../../src/gateway/messages/request-limits.ts'
import { SharedObject } from '../../../../src/gateway/messages/shared-object.ts'
import { enter } from '../../../../src/message/enter.ts'
import { defaultLimits } from '../../../../src/message/limits.ts'
import { outlineOf, RawObject } from '../../../../src/message/message-outline.ts'
import { parseBody, spelledMessage } from '../../message/json-text.ts'

const receivedAt = '2026-03-01T12:00:00.000Z'
const arrival = arrivalAt(Date.parse(receivedAt))
const inBatch: ItemContext = {
  ...occasionOf(undefined, arrival),
  kind: undefined,
  context: undefined,
  integrations: undefined,
  limits: defaultLimits,
}

const track = { type: 'track', userId: 'u1', event: 'E', messageId: 'm1' }

/** Returns an object that a batch gives for all its messages. */
function shared(value: object, limits = defaultLimits): SharedObject {
  return new SharedObject(new RawObject(JSON.stringify(value)), limits)
}

/** Returns the message that the gateway makes of an item. Throws if the gateway leaves the item out. */
function written(item: unknown, surroundings: Partial<ItemContext> = {}): Record<string, unknown> {
  const checked = checkItem(item, { ...inBatch, ...surroundings })
  if (!checked.ok) throw new Error(`left out: ${checked.reason}`)
  return JSON.parse(String(checked.value))
}

function keyOf(item: object): string | undefined {
  const checked = checkItem(item, inBatch)
  return checked.ok ? checked.key : undefined
}

function reasonOf(item: unknown, surroundings: Partial<ItemContext> = {}): string | undefined {
  const checked = checkItem(item, { ...inBatch, ...surroundings })
  return checked.ok ? undefined : checked.reason
}

describe('a message that is taken', () => {
  test('keeps all of its fields, in their order, and gets what is missing', () => {
    const sent = {
      zebra: [1, { a: null }],
      ...track,
      properties: { total: 1.5, __proto__x: 'é' },
      channel: 'server',
    }
    const message = written(sent)
    expect(message).toEqual({ ...sent, timestamp: receivedAt, receivedAt })
    expect(Object.keys(message)).toEqual([...Object.keys(sent), 'timestamp', 'receivedAt'])
  })

  test('has an empty object in place of an empty list, as PHP writes it', () => {
    const lists = { context: [], integrations: [], properties: [], traits: [] }
    const objects = { context: {}, integrations: {}, properties: {}, traits: {} }
    expect(written({ ...track, ...lists })).toMatchObject(objects)
    expect(written(outlineOf(JSON.stringify({ ...track, ...lists })))).toMatchObject(objects)
    expect(written({ ...track, ...lists, x: [] }, { context: shared({ a: 1 }) })).toMatchObject({
      context: { a: 1 },
      x: [],
    })
  })

  test('gets a messageId of its own where it has none', () => {
    for (const messageId of [undefined, null, '']) {
      const one = written({ ...track, messageId })
      const other = written({ ...track, messageId })
      expect(one['messageId']).toMatch(/^[0-9a-f-]{36}$/)
      expect(one['messageId']).not.toBe(other['messageId'])
    }
  })

  test('says when it was sent and received, and what its time was before it was corrected', () => {
    const sentAt = '2026-03-01T13:00:00Z'
    const timestamp = '2026-03-01T12:59:58Z'
    const corrected = {
      originalTimestamp: timestamp,
      sentAt,
      timestamp: '2026-03-01T11:59:58.000Z',
      receivedAt,
    }
    expect(written({ ...track, timestamp }, occasionOf(sentAt, arrival))).toEqual({ ...track, ...corrected })
    expect(written({ ...track, timestamp, sentAt }, occasionOf(receivedAt, arrival))).toEqual({
      ...track,
      ...corrected,
    })
    expect(written({ ...track, originalTimestamp: timestamp, sentAt })).toEqual({ ...track, ...corrected })
  })

  test('happened when its caller says, where its client adds when it was called', () => {
    const past = { timestamp: '2020-02-29T23:59:59.123Z', originalTimestamp: '2026-03-01T11:59:59.000Z' }
    expect(written({ ...track, ...past })).toEqual({ ...track, ...past, receivedAt })
    expect(written({ ...track, ...past, timestamp: null })['timestamp']).toBe(past.originalTimestamp)
  })

  test('is of the kind that the path says', () => {
    expect(written({ ...track, type: 'identify' }, { kind: 'track' })).toMatchObject({ type: 'track' })
    expect(written({ userId: 'u1' }, { kind: 'page' })).toMatchObject({ type: 'page' })
  })

  test('gets the context and integrations of its batch, field by field, and its own fields win', () => {
    const context = { library: { name: 'go', version: '3' }, ip: '1.1.1.1' }
    const integrations = { All: false, Webhooks: true }
    expect(written(track, { context: shared(context), integrations: shared(integrations) })).toMatchObject({
      context,
      integrations,
    })
    expect(written({ ...track, context: null }, { context: shared(context) })).toMatchObject({ context })
    const own = {
      ...track,
      context: { ip: '2.2.2.2', library: { name: 'own' } },
      integrations: { All: true },
    }
    expect(written(own, { context: shared(context), integrations: shared(integrations) })).toMatchObject({
      context: { library: { name: 'own' }, ip: '2.2.2.2' },
      integrations: { All: true, Webhooks: true },
    })
    expect(written(own, { context: shared(context) })['context']).toEqual({
      ip: '2.2.2.2',
      library: { name: 'own' },
    })
  })

  test('does not carry the write key', () => {
    expect(written({ ...track, writeKey: 'SECRET' })).not.toHaveProperty('writeKey')
  })

  test('keeps keys called __proto__ where they are, and pollutes nothing', () => {
    const text =
      '{"type":"track","userId":"u1","event":"E","__proto__":{"polluted":1},"context":{"__proto__":2}}'
    const context = '{"__proto__":3,"ip":"::1"}'
    const checked = checkItem(JSON.parse(text), { ...inBatch, context: shared(JSON.parse(context)) })
    expect(checked.ok && String(checked.value)).toContain('"__proto__":{"polluted":1}')
    expect(checked.ok && String(checked.value)).toContain('"context":{"__proto__":2,"ip":"::1"}')
    expect('polluted' in {}).toBe(false)
  })

  test('has its key by user, else by anonymous user', () => {
    expect(keyOf({ ...track, anonymousId: 'a' })).toBe('u1')
    expect(keyOf({ ...track, userId: null, anonymousId: 'a' })).toBe('a')
    expect(keyOf({ ...track, userId: '', anonymousId: 'a' })).toBe('a')
  })

  test('says how many bytes it is', () => {
    const checked = checkItem({ ...track, event: '漢字😀' }, inBatch)
    expect(checked.ok && checked.bytes).toBe(checked.ok && Buffer.byteLength(String(checked.value)))
  })
})

describe('a message is left out when', () => {
  test.each<[string, unknown, string]>([
    ['it is no object', 'track', 'not_an_object'],
    ['it is null', null, 'not_an_object'],
    ['it has no type', { userId: 'u1' }, 'unknown_type'],
    ['its type is not known', { ...track, type: 'tracks' }, 'unknown_type'],
    ['it is a delete, for which a write key is not enough', { type: 'delete', userId: 'u1' }, 'unknown_type'],
    ['it has no user', { type: 'track', event: 'E' }, 'no_user_anon_id'],
    ['its users are empty', { ...track, userId: '', anonymousId: null }, 'no_user_anon_id'],
    ['its user is a number', { ...track, userId: 7 }, 'id_not_string'],
    ['its anonymous user is a list', { ...track, anonymousId: [] }, 'id_not_string'],
    ['a track has no event', { ...track, event: undefined }, 'event_not_defined'],
    ['an event is empty', { ...track, event: '' }, 'event_not_defined'],
    ['an event is a number', { ...track, event: 7 }, 'event_not_string'],
    ['properties are text', { ...track, properties: 'x' }, 'properties_not_object'],
    ['properties are a list', { ...track, properties: [1] }, 'properties_not_object'],
    ['an id is an empty list', { ...track, userId: [] }, 'id_not_string'],
    ['traits are text', { type: 'identify', userId: 'u1', traits: 'x' }, 'traits_not_object'],
    ['a group has no groupId', { type: 'group', userId: 'u1' }, 'group_id_not_defined'],
    ['an alias has no previousId', { type: 'alias', userId: 'u1' }, 'no_previous_id'],
    ['context is text', { ...track, context: 'x' }, 'context_not_object'],
    ['integrations are true', { ...track, integrations: true }, 'integrations_not_object'],
    ['the messageId is a number', { ...track, messageId: 7 }, 'message_id_not_string'],
    ['the messageId has 101 characters', { ...track, messageId: 'x'.repeat(101) }, 'message_id_too_long'],
    [
      'a number is out of range',
      JSON.parse('{"type":"track","userId":"u","event":"E","n":1e999}'),
      'number_out_of_range',
    ],
    ['its time can not be read', { ...track, timestamp: '10/11/2009' }, 'bad_timestamp'],
    ['its time is a number', { ...track, timestamp: 1_257_894_000_000 }, 'bad_timestamp'],
    ['the time that its client gives can not be read', { ...track, originalTimestamp: 'x' }, 'bad_timestamp'],
    ['it is nested deeper than the worker takes', { ...track, properties: nested(200) }, 'nested_too_deep'],
    ['it is nested deeper than the stack', { ...track, properties: nested(100_000) }, 'nested_too_deep'],
  ])('%s', (_, item, reason) => {
    expect(reasonOf(item)).toBe(reason)
  })

  test('it has more keys than the worker takes', () => {
    const limits = { ...defaultLimits, maxKeys: 100 }
    const properties = Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`k${index}`, 1]))
    expect(reasonOf({ ...track, properties }, { limits })).toBe('too_many_keys')
  })

  test('it is over 32 KB as it was sent, and not when only its batch makes it so', () => {
    const exact = { ...track, pad: '' }
    exact.pad = 'x'.repeat(maxMessageBytes - JSON.stringify(exact).length)
    expect(reasonOf(exact)).toBeUndefined()
    expect(reasonOf(exact, { context: shared({ pad: 'x'.repeat(1_000) }) })).toBeUndefined()
    expect(reasonOf({ ...exact, pad: `${exact.pad}x` })).toBe('message_too_large')
  })

  test.each([
    ['track', { event: 'E' }],
    ['alias', { previousId: 'p'.repeat(50) }],
  ])('the worker would refuse it, with what the worker adds to it: %s', (type, more) => {
    const times = { timestamp: receivedAt, sentAt: receivedAt }
    for (let size = 40; size < 140; size++) {
      const integrations = Object.fromEntries(Array.from({ length: size }, (_, index) => [`k${index}`, 1]))
      const byKeys = { ...track, ...times, type, ...more, integrations }
      const byBytes = { ...track, ...times, type, ...more, userId: 'u'.repeat(size) }
      for (const [item, limits] of [
        [byKeys, { ...defaultLimits, maxKeys: 100 }],
        [byBytes, { ...defaultLimits, maxBytes: 550 }],
      ] as const) {
        const checked = checkItem(item, { ...inBatch, limits })
        const all = checkItem(item, inBatch)
        if (!all.ok) throw new Error(all.reason)
        const origin = { topic: 't', partition: 0, offset: 0, timestampMs: 0 }
        const entered = enter(Buffer.from(String(all.value)), origin, limits)
        const body = entered.ok ? entered.message.body.length : Infinity
        expect([size, checked.ok]).toEqual([size, body + Buffer.byteLength(all.key) <= limits.maxBytes])
      }
    }
  })

  test.each([
    ['track', { event: 'E' }],
    ['alias', { previousId: 'p'.repeat(50), context: { k3: { own: 1 } } }],
    ['alias', { 'User ID': 'v', previousId: 'p', integrations: null, context: {} }],
  ])('the worker would refuse it, with what the worker and the batch add to it: %s %o', (type, more) => {
    const item = { ...track, timestamp: receivedAt, sentAt: receivedAt, type, ...more }
    for (let size = 40; size < 140; size++) {
      const context = shared(Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`k${index}`, 1])))
      const pad = Object.fromEntries(Array.from({ length: size }, (_, index) => [`p${index}`, 1]))
      const surroundings = { ...inBatch, context, integrations: shared(pad) }
      const all = checkItem(item, surroundings)
      if (!all.ok) throw new Error(all.reason)
      for (const limits of [
        { ...defaultLimits, maxKeys: 120 },
        { ...defaultLimits, maxBytes: 1_300 },
      ]) {
        const checked = checkItem(item, { ...surroundings, limits })
        const origin = { topic: 't', partition: 0, offset: 0, timestampMs: 0 }
        const entered = enter(Buffer.from(String(all.value)), origin, limits)
        const body = entered.ok ? entered.message.body.length : Infinity
        expect([size, checked.ok]).toEqual([size, body + Buffer.byteLength(all.key) <= limits.maxBytes])
      }
    }
  })

  test('it is over the worker’s limit', () => {
    expect(reasonOf(track, { limits: { ...defaultLimits, maxBytes: 100 } })).toBe('body_too_large')
  })

  test('it is more than twice as large with what its batch adds', () => {
    const context = shared({ pad: 'x'.repeat(2 * maxMessageBytes) })
    expect(reasonOf(track, { context })).toBe('message_too_large')
  })

  test('a messageId of 100 characters is taken', () => {
    expect(reasonOf({ ...track, messageId: 'x'.repeat(100) })).toBeUndefined()
  })
})

/** Returns an object with this many levels of objects in each other. */
function nested(levels: number): object {
  let value: object = {}
  for (let level = 1; level < levels; level++) value = { a: value }
  return value
}

/** The fields that the gateway writes itself. */
const ownFields: ReadonlySet<string> = new Set([
  'type',
  'messageId',
  'timestamp',
  'originalTimestamp',
  'sentAt',
  'receivedAt',
  'writeKey',
])

function othersOf(message: object): string {
  return JSON.stringify(Object.fromEntries(Object.entries(message).filter(([name]) => !ownFields.has(name))))
}

describe('every message that a worker takes', () => {
  const tracked = spelledMessage.filter(({ value }) => 'type' in value && value.type !== 'delete')

  test('is taken, and nothing of its content is changed', () => {
    fc.assert(
      fc.property(tracked, ({ value }) => {
        const checked = checkItem(value, inBatch)
        expect(checked.ok && othersOf(parseBody(String(checked.value)))).toBe(othersOf(value))
      }),
      { numRuns: 1_000 },
    )
  })

  test('is taken by a worker again as the gateway has written it', () => {
    fc.assert(
      fc.property(tracked, fc.constantFrom(...trackingKinds, undefined), ({ value }, kind) => {
        const checked = checkItem(value, { ...inBatch, kind })
        if (!checked.ok) return
        const entered = enter(Buffer.from(String(checked.value)), {
          topic: 't',
          partition: 0,
          offset: 0,
          timestampMs: 0,
        })
        expect(entered.ok && entered.message.type).toBe(checked.kind)
        const wasGiven = checked.givenId
        if (wasGiven !== undefined) expect(entered.ok && entered.message.messageId).toBe(wasGiven)
      }),
      { numRuns: 1_000 },
    )
  })

  test('never makes it throw, whatever it is', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(...trackingKinds, undefined), (item, kind) => {
        expect(checkItem(item, { ...inBatch, kind }).ok).toBeTypeOf('boolean')
      }),
      { numRuns: 2_000 },
    )
  })
})
