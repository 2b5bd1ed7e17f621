import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { keysOf } from '../../../src/gateway/write-key.ts'

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`

describe('keysOf', () => {
  test.each([
    ['Basic with a colon', basic('KEY:'), undefined, ['KEY']],
    ['Basic without a colon', basic('KEY'), undefined, ['KEY']],
    ['Basic with a password', basic('KEY:password'), undefined, ['KEY']],
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
