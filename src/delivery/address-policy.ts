import { BlockList, isIP, isIPv6 } from 'node:net'

/**
 * Ranges that no customer's URL may reach: this machine, private networks, link-local and cloud metadata,
 * carrier NAT, test nets, multicast, reserved, and the IPv6 ranges that carry an IPv4 address inside.
 * Sources: the IANA special-purpose address registries for IPv4 and IPv6.
 */
const deniedRanges = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '::/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
  '5f00::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
]

/** Decides which addresses may be connected to. */
export type AddressPolicy = { allows(address: string): boolean }

/**
 * Denies the ranges above, except for those in `allowed` (CIDR notation, e.g. `10.1.0.0/16`). An IPv4 range
 * holds for its IPv4-mapped IPv6 spellings (`::ffff:10.1.2.3`) too. What isn't an IP literal is denied.
 */
export function createAddressPolicy(allowed: readonly string[]): AddressPolicy {
  const denyList = blockListOf(deniedRanges)
  const allowList = blockListOf(allowed)
  return {
    allows(address) {
      if (isIP(address) === 0) return false
      const family = isIPv6(address) ? 'ipv6' : 'ipv4'
      return allowList.check(address, family) || !denyList.check(address, family)
    },
  }
}

function blockListOf(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [network = '', prefix] = range.split('/')
    const family = isIPv6(network) ? 'ipv6' : 'ipv4'
    list.addSubnet(network, prefix === undefined ? (family === 'ipv6' ? 128 : 32) : Number(prefix), family)
  }
  return list
}
