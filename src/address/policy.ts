import { Address, type AddressRange, rangeOf } from './address.ts'

/**
 * IPv4 ranges that aren't public: this machine, private networks, link-local and cloud metadata, carrier NAT,
 * test nets, multicast, reserved. Sources: IANA's registries of special-purpose and of multicast addresses. A
 * few addresses within 192.0.0.0/24 and 192.88.99.0/24 are public. They are denied too, because no HTTP
 * server has such an address.
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
 * Public addresses that cloud operators reserve for use inside their clouds. From a machine in such a cloud,
 * these addresses lead to the host, or to services that can't be reached from outside. From other machines,
 * they lead nowhere. Source: the documentation of the cloud operators. Other clouds use private addresses for
 * this purpose, which `deniedIpv4` contains.
 */
const deniedOfClouds = [
  // Azure: DNS, and WireServer, from which a machine gets its configuration.
  '168.63.129.16/32',
  // IBM Cloud: infrastructure (DNS, mirrors, storage), and the private endpoints of services (databases,
  // clusters).
  '161.26.0.0/16',
  '166.8.0.0/14',
].map(rangeOf)

/**
 * The range of all public IPv6 addresses. Outside of this range are the addresses for loopback, the old
 * spellings of IPv4 (`::/96`, `::ffff:0:0:0/96`), local NAT64 (`64:ff9b:1::/48`), discard, segment routing
 * (`5f00::/16`), unique local, link-local, site-local and multicast, and the addresses that IANA has not
 * assigned yet. Source: IANA's registry of the IPv6 address space.
 */
const globalUnicast = ['2000::/3'].map(rangeOf)

/**
 * Ranges within `globalUnicast` that are denied: the ranges for protocols (such as Teredo), for
 * documentation, and for 6to4. A 6to4 address contains an IPv4 address.
 */
const deniedIpv6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'].map(rangeOf)

const ipv4 = ['::ffff:0:0/96'].map(rangeOf)
/**
 * The range of NAT64 (RFC 6052). In a network without IPv4, DNS64 returns an address of this range for a name
 * that has only IPv4 addresses.
 */
const nat64 = ['64:ff9b::/96'].map(rangeOf)

/** The rule that decides to which addresses connections are allowed. */
export type AddressPolicy = {
  /**
   * Returns true if `address` is a plain IP address to which connections are allowed. Returns false for all
   * other texts.
   */
  allows(address: string): boolean
}

/**
 * The address that is being judged. No function of this module is asynchronous, so all calls can use one
 * object.
 */
const judged = new Address()

/**
 * Creates a policy that allows public addresses and the addresses in `allowed` (CIDR notation, e.g.
 * `10.1.0.0/16`). An IPv4 range in `allowed` also allows the IPv4-mapped IPv6 spelling of its addresses
 * (`::ffff:10.1.2.3`). An address with the public NAT64 prefix counts as public if the IPv4 address that it
 * contains is public.
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
 * Returns true for names that mean this machine, whatever DNS says (RFC 6761, section 6.3). `name` is in
 * lower case, without a last dot.
 */
export function isLoopbackName(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost')
}

/**
 * Returns true if a host is refused without a DNS lookup. Such a host is an address that isn't allowed, or it
 * is a name of this machine and no loopback address is allowed. For other names, the addresses are known only
 * after a lookup. `host` is in the normal form of `new URL`.
 */
export function isRefusedHost(host: string, policy: AddressPolicy): boolean {
  const bare = host.startsWith('[') ? host.slice(1, -1) : host
  if (judged.read(bare)) return !policy.allows(bare)
  const name = bare.endsWith('.') ? bare.slice(0, -1) : bare
  return isLoopbackName(name) && !policy.allows('127.0.0.1') && !policy.allows('::1')
}
