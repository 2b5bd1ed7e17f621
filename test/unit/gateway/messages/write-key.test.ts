import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { keysIn, keysOf, saysKey } from '../../../../src/gateway/messages/write-key.ts'

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`

describe('keysOf', () => {
  test.each([
    ['Basic with a colon', basic('KEY:'), undefined, ['KEY']],
    ['Basic without a colon', basic('KEY'), undefined, ['KEY']],
    ['Basic with a password', basic('KEY:password'), undefined, ['KEY']],
    ['Basic with a key that has colons', basic('team:shop:'), undefined, ['team:shop']],
    ['Basic in other letters', basic('KEY:').replace('Basic', 'bASIC'), undefined, ['KEY']],
    ['the body', undefined, 'KEY', ['KEY']],
    ['both, the same', basic('KEY:'), 'KEY', ['KEY']],
    ['both, different: the header comes first', basic('ONE:'), 'TWO', ['ONE', 'TWO']],
    ['Bearer, and the body', 'Bearer abc.def', 'KEY', ['abc.def', 'KEY']],
    ['a scheme that says nothing, and the body', 'Digest username="x"', 'KEY', ['KEY']],
    ['nothing', undefined, undefined, []],
    ['an empty user name', basic(':'), '', []],
    ['an empty header', 'Basic ', undefined, []],
    ['a body key that is no text', undefined, 7, []],
  ])('finds the keys of %s', (_, authorization, bodyKey, expected) => {
    expect(keysOf(authorization, bodyKey)).toEqual(expected)
  })

  test('reads whatever a header may hold', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.anything(), (header, body) => {
        for (const key of keysOf(header, body)) expect(key).not.toBe('')
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('keysIn', () => {
  test.each([
    ['at the end', '{"batch":[{}],"writeKey":"KEY"}', ['KEY']],
    ['with spaces', '{"writeKey" :\n "KEY"}', ['KEY']],
    ['spelled with escapes', '{"writeKey":"a\\/\\u003c\\""}', ['a/<"']],
    [
      'in messages too, each once in a row',
      '{"batch":[{"writeKey":"A"},{"writeKey":"A"}],"writeKey":"B"}',
      ['A', 'B'],
    ],
    ['that are no text', '{"writeKey":7,"a":{"writeKey":{}}}', []],
    ['without an end', '{"writeKey":"KEY', []],
    ['that are not there', '{"a":"writeKey"}', []],
    ['whose name is spelled with escapes', '{"write\\u004bey":"A"}', ['A']],
    ['of which the last counts', '{"write\\u004bey":"A","\\u0077rite\\u004be\\u0079" : "B"}', ['B']],
    ['by names in both spellings', '{"writeKey":"A","write\\u004Bey":"B"}', ['A', 'B']],
    [
      'after many names in messages',
      `{"batch":[${Array.from({ length: 20 }, (_, key) => `{"writeKey":"${key}"}`).join(',')}],"writeKey":"K"}`,
      [...Array.from({ length: 16 }, (_, key) => String(key)), 'K'],
    ],
    ['not by a name that only contains theirs', '{"write\\u004beys":"A"}', []],
  ])('finds keys %s', (_, text, expected) => {
    expect([...keysIn(Buffer.from(text))]).toEqual(expected)
  })

  test.each([
    ['by far too many bytes', '"a name":"a value",'.repeat(50_000), true],
    ['by a value of too many bytes', `"a":[${'1,'.repeat(300_000)}1],`, true],
    ['by a long text, which costs little', `"a":"${'x'.repeat(600_000)}",`, false],
    ['by little', '"a":1,'.repeat(1_000), false],
  ])('does not search on for a key that comes late %s', (_, members, isCut) => {
    const search = { leftBytes: 150_000 }
    const body = Buffer.from(`{${members}"write\\u004bey":"KEY"}`)
    expect([...keysIn(body, search)]).toEqual(isCut ? [] : ['KEY'])
    expect(search.leftBytes <= 0).toBe(isCut)
  })

  test('finds the key of whatever JSON.stringify writes', () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1, maxLength: 200 }),
        fc.jsonValue({ maxDepth: 2 }),
        (writeKey, batch) => {
          expect([...keysIn(Buffer.from(JSON.stringify({ batch, writeKey }), 'latin1'))]).toContain(
            Buffer.from(writeKey, 'latin1').toString('latin1'),
          )
        },
      ),
    )
  })
})

test('a Basic header says the key by itself, a token or nothing does not', () => {
  const headers = [basic('KEY:'), basic(':'), 'Bearer KEY', 'Basic ', undefined]
  expect(headers.map(saysKey)).toEqual([true, false, false, false, false])
})
