import { describe, expect, test } from 'vitest'
import { parseOrigin, sourceIdOf } from '../../../src/message/record-headers.ts'

test('an origin is where a record was at first; nothing else is one', () => {
  expect(parseOrigin('audience-changes/3/17')).toEqual({
    topic: 'audience-changes',
    partition: 3,
    offset: 17,
  })
  for (const text of ['', '/3/17', 'a/3', 'a/3/x', 'a/-1/2', 'a/3/99999999999999999'])
    expect(parseOrigin(text)).toBeUndefined()
})

describe('the source of a record', () => {
  test('is the text of its header, whichever came before', () => {
    const fetched = Buffer.from('shop,ship,shops')
    const values = [fetched.subarray(0, 4), fetched.subarray(5, 9), fetched.subarray(10), 'tills']
    expect(values.map((value) => sourceIdOf({ 'source-id': value }))).toEqual([
      'shop',
      'ship',
      'shops',
      'tills',
    ])
  })

  test('is its own also when the fetch that the one before was a slice of is overwritten', () => {
    const fetched = Buffer.from('shop')
    expect(sourceIdOf({ 'source-id': fetched })).toBe('shop')
    fetched.write('ship')
    expect(sourceIdOf({ 'source-id': fetched })).toBe('ship')
    expect(sourceIdOf({ 'source-id': Buffer.from('shop') })).toBe('shop')
  })

  test('is told from another one whose bytes are the numbers of its characters', () => {
    for (const text of ['é', 'Ã©', 'é', 'Ã©'])
      expect(sourceIdOf({ 'source-id': Buffer.from(text) })).toBe(text)
    expect(sourceIdOf({ 'source-id': Buffer.from('Ã©', 'latin1') })).toBe('é')
  })

  test('is the first of several', () => {
    expect(sourceIdOf({ 'source-id': [Buffer.from('shop'), 'other'] })).toBe('shop')
    expect(sourceIdOf({ 'source-id': ['shop', null, ''] })).toBe('shop')
  })

  test('is none where the header is missing, or where its first value is null or empty, whatever follows', () => {
    for (const value of [undefined, null, '', Buffer.alloc(0), [null, 'shop'], ['', 'shop']])
      expect(sourceIdOf({ 'source-id': value })).toBeUndefined()
    expect(sourceIdOf(undefined)).toBeUndefined()
    expect(sourceIdOf({})).toBeUndefined()
  })
})
