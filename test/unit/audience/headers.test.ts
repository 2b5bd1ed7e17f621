import { describe, expect, test } from 'vitest'
import { headerText, parseOrigin } from '../../../src/audience/headers.ts'

describe('a header', () => {
  test('is the text of its bytes, whichever came before', () => {
    const fetched = Buffer.from('shop,ship,shops')
    const texts = [fetched.subarray(0, 4), fetched.subarray(5, 9), fetched.subarray(10)].map((bytes) =>
      headerText({ 'source-id': bytes }, 'source-id'),
    )
    expect(texts).toEqual(['shop', 'ship', 'shops'])
  })

  test('is its own also when the fetch that the one before was a slice of is overwritten', () => {
    const fetched = Buffer.from('shop')
    expect(headerText({ 'source-id': fetched }, 'source-id')).toBe('shop')
    fetched.write('ship')
    expect(headerText({ 'source-id': fetched }, 'source-id')).toBe('ship')
    expect(headerText({ 'source-id': Buffer.from('shop') }, 'source-id')).toBe('shop')
  })

  test('counts the first time where it is repeated, and as text where it is text', () => {
    expect(headerText({ a: [Buffer.from('x'), 'y'] }, 'a')).toBe('x')
    expect(headerText({ a: 'z' }, 'a')).toBe('z')
  })

  test('is none where it is missing, empty, or null in the record', () => {
    const noBytes: Buffer = JSON.parse('null')
    expect(headerText(undefined, 'a')).toBeUndefined()
    expect(headerText({}, 'a')).toBeUndefined()
    expect(headerText({ a: Buffer.alloc(0) }, 'a')).toBeUndefined()
    expect(headerText({ a: noBytes }, 'a')).toBeUndefined()
  })
})

test('an origin is where a record was at first; nothing else is one', () => {
  expect(parseOrigin('audience-changes/3/17')).toEqual({ partition: 3, offset: 17 })
  for (const text of [undefined, '', '/3/17', 'a/3', 'a/3/x', 'a/-1/2'])
    expect(parseOrigin(text)).toBeUndefined()
})
