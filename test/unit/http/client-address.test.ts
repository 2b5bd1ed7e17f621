import { describe, expect, test } from 'vitest'
import { plainAddress, proxiesIn } from '../../../src/http/client-address.ts'

describe('an address', () => {
  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:192.0.2.1', '192.0.2.1'],
    [' 192.0.2.1 ', '192.0.2.1'],
    ['192.0.2.1:4711', '192.0.2.1'],
    ['[2001:db8::1]:443', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['2001:db8::1', '2001:db8::1'],
  ])('%s is %s', (text, address) => {
    expect(plainAddress(text)).toBe(address)
  })

  test.each([
    '',
    'unknown',
    '_hidden',
    '192.0.2',
    '192.0.2.256',
    '::ffff:192.0.2.256',
    'example.com:80',
    '[]',
  ])('%j is none', (text) => {
    expect(plainAddress(text)).toBeUndefined()
  })
})

describe('trusted proxies', () => {
  test('are those of the ranges, in whichever spelling', () => {
    const isTrusted = proxiesIn(['10.0.0.0/8', '2001:db8::/32'])
    if (isTrusted === false) throw new Error('there are some')
    const addresses = [
      '10.1.2.3',
      '::ffff:10.1.2.3',
      '10.1.2.3:80',
      '[2001:db8::9]:1',
      '11.1.2.3',
      '2001:db9::',
      'x',
    ]
    expect(addresses.map(isTrusted)).toEqual([true, true, true, true, false, false, false])
  })

  test('are none where there are no ranges', () => {
    expect(proxiesIn([])).toBe(false)
  })
})
