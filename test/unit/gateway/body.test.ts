import { gzipSync } from 'node:zlib'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readBody } from '../../../src/gateway/body.ts'
import { spelledMessage } from '../message/json-text.ts'

const limit = 1_000
const read = (text: string | Buffer, maxBytes = limit) => readBody(Buffer.from(text), maxBytes)

describe('readBody', () => {
  test('reads an object, plain and in gzip, and says how large it is', () => {
    const text = '{"userId":"u1"}'
    const expected = { ok: true, body: { userId: 'u1' }, bytes: text.length }
    expect(read(text)).toEqual(expected)
    expect(read(gzipSync(text))).toEqual(expected)
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
    expect(read(exact)).toMatchObject({ ok: true, bytes: limit })
    expect(read(gzipSync(exact))).toMatchObject({ ok: true, bytes: limit })
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

function expectRead(text: string) {
  const result = read(text)
  if (!result.ok) throw new Error(result.fault)
  return result
}
