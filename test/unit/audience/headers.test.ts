import { describe, expect, test } from 'vitest'
import { filledHeader } from '../../../src/audience/headers.ts'

describe('a header', () => {
  test('is the text of its bytes, whichever came before', () => {
    const fetched = Buffer.from('shop,ship,shops')
    const texts = [fetched.subarray(0, 4), fetched.subarray(5, 9), fetched.subarray(10)].map((bytes) =>
      filledHeader({ 'source-id': bytes }, 'source-id'),
    )
    expect(texts).toEqual(['shop', 'ship', 'shops'])
  })

  test('is its own also when the fetch that the one before was a slice of is overwritten', () => {
    const fetched = Buffer.from('shop')
    expect(filledHeader({ 'source-id': fetched }, 'source-id')).toBe('shop')
    fetched.write('ship')
    expect(filledHeader({ 'source-id': fetched }, 'source-id')).toBe('ship')
    expect(filledHeader({ 'source-id': Buffer.from('shop') }, 'source-id')).toBe('shop')
  })

  test('counts the first time where it is repeated, and as text where it is text', () => {
    expect(filledHeader({ a: [Buffer.from('x'), 'y'] }, 'a')).toBe('x')
    expect(filledHeader({ a: 'z' }, 'a')).toBe('z')
  })

  test('is none where it is missing, empty, or null in the record', () => {
    const noBytes: Buffer = JSON.parse('null')
    expect(filledHeader(undefined, 'a')).toBeUndefined()
    expect(filledHeader({}, 'a')).toBeUndefined()
    expect(filledHeader({ a: Buffer.alloc(0) }, 'a')).toBeUndefined()
    expect(filledHeader({ a: noBytes }, 'a')).toBeUndefined()
  })
})
