import { gzipSync } from 'node:zlib'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AddressContexts } from '../../../../src/gateway/messages/address-contexts.ts'
import { readBody } from '../../../../src/gateway/messages/body.ts'
import { RequestWork } from '../../../../src/gateway/messages/request-work.ts'
import { scanBatch } from '../../../../src/gateway/messages/scan-body.ts'
import { readCall } from '../../../../src/gateway/calls/tracking-call.ts'
import { defaultLimits } from '../../../../src/message/limits.ts'
import { spelledMessage } from '../../message/json-text.ts'

const limit = 1_000
const read = (text: string | Buffer, maxBytes = limit) => readBody(Buffer.from(text), maxBytes)
const setting = { limits: defaultLimits, now: Date.now, addressContexts: new AddressContexts(defaultLimits) }

/** Returns the number of whole numbers of a text that lose digits, outside of the messages of a batch. */
function lostIn(text: string): number | undefined {
  const scanned = scanBatch(Buffer.from(`{"batch":[],"a":${text}}`), defaultLimits, new RequestWork(0, 0))
  return scanned.ok ? scanned.lostDigits : undefined
}

/** Returns the places of the messages of a batch that are left out because they aren't JSON, or a fault. */
function notJsonIn(text: string): number[] | string {
  const bytes = Buffer.from(text)
  const work = new RequestWork(bytes.length, bytes.length)
  const scanned = scanBatch(bytes, defaultLimits, work)
  if (!scanned.ok) return scanned.fault
  const called = readCall('batch', scanned, { client: { ip: undefined }, work }, setting)
  if (!called.ok) return called.answer.body
  const { items, surroundings } = called
  return Array.from({ length: items.length }, (_, index) => index).filter((index) => {
    const checked = items.check(index, surroundings)
    return !checked.ok && checked.reason === 'not_json'
  })
}

describe('readBody', () => {
  test('reads an object, plain and in gzip', () => {
    const text = '{"userId":"u1"}'
    const expected = { ok: true, body: { userId: 'u1' } }
    expect(read(text)).toEqual(expected)
    expect(read(gzipSync(text))).toEqual(expected)
  })

  test('reads gzip in several members, some of them empty', () => {
    const members = ['', '{"user', '', 'Id":"u1"}', ''].map((part) => gzipSync(part))
    expect(read(Buffer.concat(members))).toEqual({ ok: true, body: { userId: 'u1' } })
  })

  test('ignores a byte order mark', () => {
    expect(read('\ufeff{"a":1}')).toMatchObject({ ok: true, body: { a: 1 } })
  })

  test.each([
    ['nothing', '', 'not_json'],
    ['what is cut off', '{"a":1', 'not_json'],
    ['what Python writes', '{"a":NaN}', 'not_json'],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'not_utf8'],
    ['a list', '[]', 'not_an_object'],
    ['null', 'null', 'not_an_object'],
    ['a number', '7', 'not_an_object'],
    ['gzip that is cut off', gzipSync('{"a":1}').subarray(0, 12), 'bad_gzip'],
    ['gzip in gzip', gzipSync(gzipSync('{"a":1}')), 'not_utf8'],
  ])('refuses %s', (_, bytes, fault) => {
    expect(read(Buffer.from(bytes))).toEqual({ ok: false, fault })
  })

  test('takes exactly the limit, plain and inflated', () => {
    const exact = `{"a":"${'x'.repeat(limit - 8)}"}`
    expect(read(exact)).toMatchObject({ ok: true })
    expect(read(gzipSync(exact))).toMatchObject({ ok: true })
    expect(read(` ${exact}`)).toEqual({ ok: false, fault: 'too_large' })
    expect(read(gzipSync(` ${exact}`))).toEqual({ ok: false, fault: 'too_large' })
  })

  test('inflates no more of a bomb than the limit', () => {
    const bomb = gzipSync(Buffer.alloc(200 * 1_024 * 1_024, ' '))
    const before = process.memoryUsage().arrayBuffers
    expect(read(bomb, 512_000)).toEqual({ ok: false, fault: 'too_large' })
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(8 * 1_024 * 1_024)
  })

  test('keeps a key __proto__ as a field, and pollutes nothing', () => {
    const { body } = expectRead('{"__proto__":{"polluted":true},"a":{"__proto__":1}}')
    expect(Object.keys(body)).toEqual(['__proto__', 'a'])
    expect(Object.getPrototypeOf(body)).toBe(Object.prototype)
    expect('polluted' in {}).toBe(false)
  })

  test('reads every message that can be written, as it is meant', () => {
    fc.assert(
      fc.property(spelledMessage, fc.boolean(), ({ text, value }, isCompressed) => {
        const bytes = Buffer.from(text)
        const result = readBody(isCompressed ? gzipSync(bytes) : bytes, 10_000_000)
        expect(result.ok && JSON.stringify(result.body)).toBe(JSON.stringify(value))
      }),
      { numRuns: 1_000 },
    )
  })

  test('never throws, whatever the bytes are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.boolean(), (bytes, isMarked) => {
        const sent = isMarked ? Buffer.concat([Buffer.from([0x1f, 0x8b, 8]), bytes]) : Buffer.from(bytes)
        expect(readBody(sent, limit).ok).toBeTypeOf('boolean')
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('a batch with what is no JSON number', () => {
  test.each([
    ['NaN', '{"batch":[{"a":1},{"messageId":"m","a":NaN},{"a":2}],"sentAt":null}', [1]],
    ['Infinity and -Infinity', '{"batch":[{"a":[Infinity]},{"a":{"b":-Infinity}},7]}', [0, 1]],
    ['several in one', '{"batch":[{"a":NaN,"b":NaN}]}', [0]],
    ['one in place of a message', '{"batch":[1,NaN]}', [1]],
    ['spaces and line breaks', '{ "batch" : [ {} ,\n{ "a" : NaN } ] }', [1]],
    ['strings that only look like it', '{"batch":["NaN","[{,\\"NaN",{"a":NaN},"batch"]}', [2]],
    ['fields beside it', '{"context":{"batch":[1,{}]},"writeKey":"batch","batch":[{},NaN],"x":["NaN"]}', [1]],
    ['a batch that is there twice, of which the last counts', '{"batch":[NaN],"batch":[{},NaN]}', [1]],
  ])('loses that message alone: %s', (_, text, spoiled) => {
    expect(notJsonIn(text)).toEqual(spoiled)
  })

  test.each([
    ['in what it says for all', '{"batch":[{}],"context":{"a":NaN}}'],
    ['in what it says for all, and in a message', '{"context":{"a":NaN},"batch":[{"a":NaN}]}'],
    ['in place of the batch', '{"batch":NaN}'],
    ['beside another fault', '{"batch":[{"a":NaN},{"a":}]}'],
    ['in longer words', '{"batch":[NaNs]}'],
    ['in a key', '{"batch":[{NaN:1}]}'],
    ['and is cut off', '{"batch":[{"a":NaN'],
    ['and has a string without an end', '{"batch":[{"a":NaN,"b":"\\'],
  ])('is no JSON where it stands %s', (_, text) => {
    expect(notJsonIn(text)).toBe('not_json')
  })

  test('is read as JSON.parse would, with null in its place, wherever it stands in messages', () => {
    const item = fc.json({ maxDepth: 3 }).map((text) => text.replaceAll(/(?<=[:,[])null|^null$/g, 'NaN'))
    fc.assert(
      fc.property(fc.array(item, { minLength: 1, maxLength: 8 }), (items) => {
        const spoiled = items.flatMap((text, index) => (isSpoiled(text) ? [index] : []))
        expect(notJsonIn(`{"sentAt":"NaN","batch":[${items.join(',')}]}`)).toEqual(spoiled)
      }),
      { numRuns: 1_000 },
    )
  })
})

function isSpoiled(text: string): boolean {
  try {
    JSON.parse(text)
    return false
  } catch {
    return true
  }
}

describe('a whole number beyond 2^53', () => {
  test.each([
    ['9007199254740993', 1],
    ['-9007199254740993', 1],
    ['[9007199254740993,{"b":12345678901234567890}]', 2],
    ['9007199254740992', 0],
    ['1000000000000000000000', 0],
    ['"9007199254740993"', 0],
    ['"\\"9007199254740993"', 0],
    ['0.1234567890123456789', 0],
    ['12345678901234567.5', 0],
    ['9007199254740993e2', 0],
    ['1'.repeat(400), 0],
  ])('%s: %i lose digits', (text, count) => {
    expect(lostIn(text)).toBe(count)
  })
})

function expectRead(text: string) {
  const result = read(text)
  if (!result.ok) throw new Error(result.fault)
  return result
}
