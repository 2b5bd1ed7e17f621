import { BlockList, isIP, isIPv6 } from 'node:net'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createAddressPolicy, isRefusedHost } from '../../../src/address/policy.ts'

const strict = createAddressPolicy([])

/**
 * Ranges with their first and last address. `before` and `after` are the addresses next to the range. They
 * are empty if these addresses aren't public.
 */
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
  ['Azure, its host', '168.63.129.16', '168.63.129.16', '168.63.129.15', '168.63.129.17'],
  ['IBM Cloud, infrastructure', '161.26.0.0', '161.26.255.255', '161.25.255.255', '161.27.0.0'],
  ['IBM Cloud, service endpoints', '166.8.0.0', '166.11.255.255', '166.7.255.255', '166.12.0.0'],
  ['multicast and reserved', '224.0.0.0', '255.255.255.255', '223.255.255.255', ''],
  ['all below global unicast', '::', '1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '', '2000::'],
  [
    'Teredo and other protocols',
    '2001::',
    '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff',
    '2000:ffff::',
    '2001:200::',
  ],
  ['documentation', '2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', '2001:db7:ffff::', '2001:db9::'],
  ['6to4', '2002::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2001:ffff::', '2003::'],
  [
    'documentation, the newer',
    '3fff::',
    '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff',
    '3ffe:ffff::',
    '3fff:1000::',
  ],
  ['all above global unicast', '4000::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '3fff:ffff::', ''],
]

/**
 * The ranges that IANA's registries of special-purpose addresses list as not globally reachable, and the
 * ranges for multicast.
 */
const registered = wordsOf(`
  0.0.0.0/8 0.0.0.0/32 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24
  192.0.0.0/29 192.0.0.8/32 192.0.0.170/32 192.0.0.171/32 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16
  198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 255.255.255.255/32 224.0.0.0/4 ::1/128 ::/128
  64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32 2001:2::/48 2001:10::/28 2001:db8::/32
  2002::/16 3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8
`)

/**
 * Addresses of the internal services of clouds. Some are public, and some belong to private or link-local
 * ranges. Source: the documentation of the providers.
 */
const ofClouds = {
  'Amazon EC2': '169.254.169.254 fd00:ec2::254',
  'Amazon EC2: DNS and time': '169.254.169.253 169.254.169.123 fd00:ec2::253 fd00:ec2::123',
  'Amazon ECS and EKS: credentials': '169.254.170.2 169.254.170.23 fd00:ec2::23',
  'Google Cloud': '169.254.169.254 fd20:ce::254',
  Azure: '169.254.169.254 168.63.129.16',
  'Azure App Service and Functions: identity': '169.254.129.1 169.254.130.1',
  'Oracle Cloud': '169.254.169.254 192.0.0.192 fd00:c1::a9fe:a9fe',
  'Alibaba Cloud': '100.100.100.200',
  'Tencent Cloud': '169.254.0.23 100.88.222.5',
  'IBM Cloud': '169.254.169.254 161.26.0.7 161.26.0.10 166.8.0.1 166.9.0.1',
  OpenStack: '169.254.169.254 fe80::a9fe:a9fe',
  'DigitalOcean, Hetzner, Linode, Vultr': '169.254.169.254 fd00:a9fe:a9fe::1',
  Scaleway: '169.254.42.42 fd00:42::42',
}

describe('without an exception', () => {
  test.each(Object.entries(ofClouds))(
    'what a machine of %s learns of its host from is denied, however it is written',
    (_name, text) => {
      const written = wordsOf(text).flatMap((address) =>
        isIPv6(address) ? [address] : [address, `::ffff:${address}`, `64:ff9b::${address}`],
      )
      expect(written.filter((address) => strict.allows(address))).toEqual([])
    },
  )

  test.each(ranges)(
    '%s is denied from its first address to its last, and no further',
    (_name, first, last, before, after) => {
      expect([first, last].filter((address) => strict.allows(address))).toEqual([])
      expect([before, after].filter((address) => address !== '' && !strict.allows(address))).toEqual([])
    },
  )

  test('nothing that a registry calls special is allowed', () => {
    const special = blockListOf(registered)
    fc.assert(
      fc.property(addresses, (address) => {
        expect(strict.allows(address) && special.check(address, familyOf(address))).toBe(false)
      }),
      { numRuns: 5_000 },
    )
  })

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
    ['64:ff9b::8.8.8.8', true],
    ['64:ff9b::808:808', true],
    ['64:ff9b::10.0.0.1', false],
    ['64:ff9b::a9fe:a9fe', false],
    ['64:ff9b:0:0:0:1::', false],
    ['64:ff9b:1::8.8.8.8', false],
    ['::8.8.8.8', false],
    ['::ffff:0:8.8.8.8', false],
    ['2002:808:808::', false],
    ['2001:0:808:808::', false],
  ])('an IPv4 address inside of IPv6: %s, %s', (address, isAllowed) => {
    expect(strict.allows(address)).toBe(isAllowed)
  })

  test.each([
    '',
    'localhost',
    'example.com',
    '127.1',
    '8.8.8',
    '8.8.8.8.8',
    '8.8.8.',
    '.8.8.8',
    '8..8.8',
    '8.8.8.256',
    '8.8.8.8 ',
    '8.8.8.-8',
    '8.8.8.8e0',
    '0x7f.1',
    '0x8.8.8.8',
    '2130706433',
    '010.0.0.1',
    '8.8.8.08',
    '8.8.8.8:80',
    '８.8.8.8',
    '[::1]',
    '[2606:4700::1]',
    'fe80::1%lo',
    '2606:4700::1%eth0',
    ':',
    ':::',
    '2606:4700:1',
    '2606:4700::1::',
    '2606:4700::12345',
    '2606:4700::g',
    '2606:4700:0:0:0:0:0:0:1',
    '2606:4700:0:0:0:0:0:0::',
    '2606:4700:0:0:0:0:0:1:',
    ':2606:4700:0:0:0:0:0:1',
    '2606:4700::8.8.8',
    '2606:4700::8.8.8.8:1',
    '2606:4700:0:0:0:0:0:8.8.8.8',
  ])('what is no plain address is denied: %j', (text) => {
    expect(strict.allows(text)).toBe(false)
  })
})

describe('with exceptions', () => {
  const policy = createAddressPolicy([
    '10.1.0.0/16',
    '127.0.0.1',
    'fd00:1::/32',
    '::1',
    '64:ff9b::10.0.0.0/104',
    '168.63.129.16/32',
  ])

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
    ['64:ff9b::10.2.2.3', true],
    ['64:ff9b::127.0.0.1', false],
    ['8.8.8.8', true],
    ['168.63.129.16', true],
    ['::ffff:168.63.129.16', true],
    ['166.8.0.1', false],
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

  test('are as wide as a block list of Node takes them to be', () => {
    fc.assert(
      fc.property(
        fc.ipV4(),
        fc.ipV6(),
        fc.nat(32),
        fc.nat(128),
        addresses,
        (four, six, bits4, bits6, address) => {
          const cidrs = [`${four}/${bits4}`, `${six}/${bits6}`]
          const isException = blockListOf(cidrs).check(address, familyOf(address))
          expect(createAddressPolicy(cidrs).allows(address)).toBe(isException || strict.allows(address))
        },
      ),
      { numRuns: 5_000 },
    )
  })

  test.each([
    '',
    'example.com',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/8/8',
    '10.0.0.0/a',
    '10.0.0.0/',
    '::/',
    '10.0.0.0/ 8',
    '10.0.0.0/8 ',
    '10.0.0.0/+8',
    '10.0.0.0/0x8',
    '10.0.0.0/1e1',
    '10.0.0.0/8.0',
    '::/129',
    '10.1/16',
  ])('%j is no range', (cidr) => {
    expect(() => createAddressPolicy([cidr])).toThrow('is no range of addresses')
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

test('every address can be read, and nothing else', () => {
  const everything = createAddressPolicy(['::/0'])
  const texts = fc.oneof(fc.string(), fc.ipV4Extended(), fc.ipV6(), fc.ipV4(), fc.domain(), almostAddresses)
  fc.assert(
    fc.property(texts, (text) => {
      expect(everything.allows(text)).toBe(isIP(text) !== 0 && !text.includes('%'))
    }),
    { numRuns: 20_000 },
  )
})

describe('a host of a URL', () => {
  test.each([
    ['localhost', true],
    ['localhost.', true],
    ['api.localhost', true],
    ['127.0.0.1', true],
    ['[::1]', true],
    ['[fd00::1]', true],
    ['::1', true],
    ['8.8.8.8', false],
    ['[2606:4700::1]', false],
    ['example.com', false],
    ['localhost.example.com', false],
    ['notlocalhost', false],
    ['10.0.0.1.example.com', false],
  ])('is refused for what it says: %s, %s', (host, isRefused) => {
    expect(isRefusedHost(host, strict)).toBe(isRefused)
  })

  test.each(['127.0.0.0/8', '::1'])('may be localhost where %s is allowed', (range) => {
    expect(isRefusedHost('localhost', createAddressPolicy([range]))).toBe(false)
  })
})

/**
 * Random addresses, many of them near the edges of the registries' ranges. A random IPv6 address is hardly
 * ever in such a range.
 */
const addresses = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc
    .tuple(fc.constantFrom(...registered), fc.bigInt(-2n, 2n), fc.boolean())
    .map(([cidr, step, isLast]) => near(cidr, step, isLast)),
)

const almostAddresses = fc
  .array(fc.constantFrom(':', '::', '.', '0', '1', 'a', 'ff', 'ffff', '255', '256', '01', '%', '8.8.8.8'), {
    maxLength: 18,
  })
  .map((parts) => parts.join(''))

function blockListOf(cidrs: readonly string[]): BlockList {
  const list = new BlockList()
  for (const cidr of cidrs) {
    const [network = '', prefix = isIPv6(network) ? '128' : '32'] = cidr.split('/')
    list.addSubnet(network, Number(prefix), familyOf(network))
  }
  return list
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv6(address) ? 'ipv6' : 'ipv4'
}

/** Returns an address a few steps from the first or the last address of a range. */
function near(cidr: string, step: bigint, isLast: boolean): string {
  const [network = '', prefix = ''] = cidr.split('/')
  const bits = isIPv6(network) ? 128n : 32n
  const size = 1n << (bits - BigInt(prefix))
  const first = isIPv6(network)
    ? numberOf(groupsOf(network), 16n)
    : numberOf(network.split('.').map(Number), 8n)
  const wanted = BigInt.asUintN(Number(bits), (isLast ? first + size - 1n : first) + step)
  return bits === 32n
    ? partsOf(wanted, 4, 8n).join('.')
    : partsOf(wanted, 8, 16n)
        .map((part) => part.toString(16))
        .join(':')
}

function groupsOf(network: string): number[] {
  const [head = '', tail = ''] = network.split('::')
  const before = groupsIn(head)
  const after = groupsIn(tail)
  return [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after]
}

function groupsIn(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
}

function wordsOf(text: string): string[] {
  return text.trim().split(/\s+/)
}

function numberOf(parts: readonly number[], bits: bigint): bigint {
  return parts.reduce((sum, part) => (sum << bits) + BigInt(part), 0n)
}

function partsOf(value: bigint, count: number, bits: bigint): number[] {
  return Array.from({ length: count }, (_, index) =>
    Number(BigInt.asUintN(Number(bits), value >> (bits * BigInt(count - 1 - index)))),
  )
}
