import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createAddressPolicy } from '../../../src/delivery/address-policy.ts'

const strict = createAddressPolicy([])

/** The first and the last address of a range, and the ones next to it where those are public. */
const ranges: [name: string, first: string, last: string, before: string, after: string][] = [
  ['this network', '0.0.0.0', '0.255.255.255', '', '1.0.0.0'],
  ['private 10/8', '10.0.0.0', '10.255.255.255', '9.255.255.255', '11.0.0.0'],
  ['carrier NAT', '100.64.0.0', '100.127.255.255', '100.63.255.255', '100.128.0.0'],
  ['loopback', '127.0.0.0', '127.255.255.255', '126.255.255.255', '128.0.0.0'],
  ['link-local, metadata', '169.254.0.0', '169.254.255.255', '169.253.255.255', '169.255.0.0'],
  ['private 172.16/12', '172.16.0.0', '172.31.255.255', '172.15.255.255', '172.32.0.0'],
  ['protocol assignments', '192.0.0.0', '192.0.0.255', '191.255.255.255', '192.0.1.0'],
  ['test net 1', '192.0.2.0', '192.0.2.255', '192.0.1.255', '192.0.3.0'],
  ['6to4 relays', '192.88.99.0', '192.88.99.255', '192.88.98.255', '192.88.100.0'],
  ['private 192.168/16', '192.168.0.0', '192.168.255.255', '192.167.255.255', '192.169.0.0'],
  ['benchmarks', '198.18.0.0', '198.19.255.255', '198.17.255.255', '198.20.0.0'],
  ['test net 2', '198.51.100.0', '198.51.100.255', '198.51.99.255', '198.51.101.0'],
  ['test net 3', '203.0.113.0', '203.0.113.255', '203.0.112.255', '203.0.114.0'],
  ['multicast and reserved', '224.0.0.0', '255.255.255.255', '223.255.255.255', ''],
  ['IPv6 loopback, IPv4-compatible', '::', '::255.255.255.255', '', '::1:0:0:0'],
  ['NAT64', '64:ff9b::', '64:ff9b::ffff:ffff', '64:ff9a:ffff::', '64:ff9b:0:0:0:1::'],
  ['local NAT64', '64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff', '64:ff9b:0:ffff::', '64:ff9b:2::'],
  ['discard', '100::', '100::ffff:ffff:ffff:ffff', 'ff:ffff::', '100:0:0:1::'],
  ['Teredo and other protocols', '2001::', '2001:1ff:ffff::', '2000:ffff::', '2001:200::'],
  ['documentation', '2001:db8::', '2001:db8:ffff::', '2001:db7:ffff::', '2001:db9::'],
  ['6to4', '2002::', '2002:ffff::', '2001:ffff::', '2003::'],
  ['documentation, the newer', '3fff::', '3fff:fff:ffff::', '3ffe:ffff::', '3fff:1000::'],
  ['segment routing', '5f00::', '5f00:ffff::', '5eff:ffff::', '5f01::'],
  ['unique local', 'fc00::', 'fdff:ffff::', 'fbff:ffff::', 'fe00::'],
  ['IPv6 link-local', 'fe80::', 'febf:ffff::', 'fe7f:ffff::', ''],
  ['IPv6 site-local', 'fec0::', 'feff:ffff::', '', ''],
  ['IPv6 multicast', 'ff00::', 'ffff:ffff::', '', ''],
]

describe('without an exception', () => {
  test.each(ranges)(
    '%s is denied from its first address to its last, and no further',
    (_name, ...addresses) => {
      const [first, last, before, after] = addresses
      expect([first, last].filter((address) => strict.allows(address))).toEqual([])
      expect([before, after].filter((address) => address !== '' && !strict.allows(address))).toEqual([])
    },
  )

  test.each(['1.1.1.1', '8.8.8.8', '93.184.215.14', '2606:4700:4700::1111', '2a00:1450:4001:830::200e'])(
    '%s is public',
    (address) => {
      expect(strict.allows(address)).toBe(true)
    },
  )

  test.each([
    ['::ffff:10.0.0.1', false],
    ['::ffff:a00:1', false],
    ['0:0:0:0:0:ffff:7f00:1', false],
    ['::FFFF:169.254.169.254', false],
    ['::ffff:8.8.8.8', true],
  ])('an IPv4 address inside of IPv6 is judged as that: %s', (address, isAllowed) => {
    expect(strict.allows(address)).toBe(isAllowed)
  })

  test.each([
    '',
    'localhost',
    'example.com',
    '127.1',
    '0x7f.1',
    '2130706433',
    '010.0.0.1',
    '8.8.8.8:80',
    '[::1]',
    'fe80::1%lo',
  ])('what is no plain address is denied: %j', (text) => {
    expect(strict.allows(text)).toBe(false)
  })
})

describe('with exceptions', () => {
  const policy = createAddressPolicy(['10.1.0.0/16', '127.0.0.1', 'fd00:1::/32', '::1'])

  test.each([
    ['10.1.0.0', true],
    ['10.1.255.255', true],
    ['10.0.255.255', false],
    ['10.2.0.0', false],
    ['::ffff:10.1.2.3', true],
    ['::ffff:10.2.2.3', false],
    ['127.0.0.1', true],
    ['127.0.0.2', false],
    ['::1', true],
    ['::2', false],
    ['fd00:1:ffff::1', true],
    ['fd00:2::1', false],
    ['8.8.8.8', true],
  ])('%s: %s', (address, isAllowed) => {
    expect(policy.allows(address)).toBe(isAllowed)
  })

  test('an exception for all of IPv4 is none for IPv6', () => {
    const allIpv4 = createAddressPolicy(['0.0.0.0/0'])
    expect(['10.0.0.1', '255.255.255.255', 'fd00::1'].map((address) => allIpv4.allows(address))).toEqual([
      true,
      true,
      false,
    ])
  })
})

test('an address and its spelling inside of IPv6 are judged the same', () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      expect(strict.allows(`::ffff:${address}`)).toBe(strict.allows(address))
    }),
    { numRuns: 1_000 },
  )
})

test('whatever the text, it does not throw, and only addresses are allowed', () => {
  const texts = fc.oneof(fc.string(), fc.ipV4Extended(), fc.ipV6(), fc.domain())
  fc.assert(
    fc.property(texts, (text) => {
      const isAddress = URL.canParse(`http://${text.includes(':') ? `[${text}]` : text}/`)
      expect(strict.allows(text) && !isAddress).toBe(false)
    }),
    { numRuns: 1_000 },
  )
})
