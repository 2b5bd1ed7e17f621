import { Address, type AddressRange, rangeOf } from './address.ts'

/**
 * IPv4 that isn't public: this machine, private networks, link-local and cloud metadata, carrier NAT, test
 * nets, multicast, reserved. Sources: IANA's registries of special-purpose and of multicast addresses. Its
 * few ranges that are routed and serve no HTTP (inside of 192.0.0.0/24 and 192.88.99.0/24) are left out as
 * well.
 */
const deniedIpv4 = [
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
].map(rangeOf)

/**
 * Public addresses that clouds keep for their own machines: from there they lead to the host, or to services
 * that nobody else reaches, and from elsewhere to nothing. Source: the documents of those who run these
 * clouds. Other clouds use addresses that aren't public for that, and are denied above.
 */
const deniedOfClouds = [
  // Azure: WireServer, which gives a machine its configuration, and DNS.
  '168.63.129.16/32',
  // IBM Cloud: infrastructure (DNS, mirrors, storage), and the private endpoints of services (databases,
  // clusters).
  '161.26.0.0/16',
  '166.8.0.0/14',
].map(rangeOf)

/**
 * All of IPv6 that is routed. Outside of it lie loopback, the old ways to write IPv4 (`::/96`,
 * `::ffff:0:0:0/96`), local NAT64 (`64:ff9b:1::/48`), discard, segment routing (`5f00::/16`), unique local,
 * link-local, site-local, multicast, and what IANA has not given out yet. Source: IANA's registry of the IPv6
 * address space.
 */
const globalUnicast = ['2000::/3'].map(rangeOf)

/** Protocols (Teredo among them), documentation, and 6to4, which carries an IPv4 address inside. */
const deniedIpv6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'].map(rangeOf)

const ipv4 = ['::ffff:0:0/96'].map(rangeOf)
/** NAT64 (RFC 6052): where there is no IPv4, DNS64 gives this for a name that has nothing else. */
const nat64 = ['64:ff9b::/96'].map(rangeOf)

/** Decides which addresses may be connected to. */
export type AddressPolicy = {
  /** Whether it is an address, and one that may be connected to. What isn't a plain address is denied. */
  allows(address: string): boolean
}

/** The address that is judged. Nothing here waits, so one is enough. */
const judged = new Address()

/**
 * Allows public addresses, and those in `allowed` (CIDR notation, e.g. `10.1.0.0/16`). An IPv4 range holds
 * for its IPv4-mapped IPv6 spellings (`::ffff:10.1.2.3`) too. The public NAT64 prefix is judged by the IPv4
 * address inside.
 */
export function createAddressPolicy(allowed: readonly string[]): AddressPolicy {
  const exceptions: readonly AddressRange[] = allowed.map(rangeOf)
  return {
    allows: (address) => judged.read(address) && (judged.isWithinAny(exceptions) || isPublic()),
  }
}

function isPublic(): boolean {
  if (judged.isWithinAny(nat64)) judged.unwrapIpv4()
  if (judged.isWithinAny(ipv4)) return !judged.isWithinAny(deniedIpv4) && !judged.isWithinAny(deniedOfClouds)
  return judged.isWithinAny(globalUnicast) && !judged.isWithinAny(deniedIpv6)
}

/**
 * Names that mean this machine, whatever DNS says (RFC 6761, section 6.3). In lower case; a last dot is no
 * part of them.
 */
export function isLoopbackName(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost')
}

/**
 * Whether a host is refused for what it says by itself: an address that isn't allowed, or a name of this
 * machine where no loopback address is allowed. What other names lead to is known when they are resolved.
 * `host` is in the normal form of `new URL`.
 */
export function isRefusedHost(host: string, policy: AddressPolicy): boolean {
  const bare = host.startsWith('[') ? host.slice(1, -1) : host
  if (judged.read(bare)) return !policy.allows(bare)
  const name = bare.endsWith('.') ? bare.slice(0, -1) : bare
  return isLoopbackName(name) && !policy.allows('127.0.0.1') && !policy.allows('::1')
}
