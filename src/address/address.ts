// IP addresses as numbers. Addresses are read strictly. An IPv4 address must be four decimal numbers without
// leading zeros, as `new URL` and system calls write it. A text in any other spelling isn't read as an
// address, so connections to it are never allowed.

const groupCount = 8
const wordCount = 4
const bitsOfGroup = 16
const bitsOfIpv4 = 32
/**
 * The index of the IPv6 group at which a contained IPv4 address begins. The IPv4 address `1.2.3.4` is read
 * like the mapped IPv6 address `::ffff:1.2.3.4`, so that both spellings of one address give the same numbers.
 */
const ipv4Start = 6
/** The value of the group before the IPv4 address, in a mapped IPv6 address such as `::ffff:1.2.3.4`. */
const ipv4Mark = 0xffff

/**
 * An IP address. The object is reused: each `read` overwrites the address. A new object for each address
 * would cost more than the reading. `groups` has the eight groups in the order of the text. `words` is a view
 * of the same memory, for comparisons. Each word is two groups, in the byte order of the machine.
 */
export class Address {
  readonly groups = new Uint16Array(groupCount)
  readonly words = new Uint32Array(this.groups.buffer)

  /**
   * Reads a plain address. Returns false for any other text: a name, or an address with a zone, brackets or a
   * port.
   */
  read(text: string): boolean {
    this.words.fill(0)
    if (text.includes(':')) return readIpv6(text, this.groups)
    this.groups[ipv4Start - 1] = ipv4Mark
    return readIpv4(text, 0, this.groups, ipv4Start)
  }

  /**
   * Replaces this address by the IPv4 address that its last 32 bits contain, in the mapped form
   * (`::ffff:1.2.3.4`).
   */
  unwrapIpv4(): void {
    this.groups.fill(0, 0, ipv4Start - 1)
    this.groups[ipv4Start - 1] = ipv4Mark
  }

  isWithinAny(ranges: readonly AddressRange[]): boolean {
    for (let index = 0; index < ranges.length; index++) {
      const range = ranges[index]
      if (range !== undefined && isWithin(this.words, range)) return true
    }
    return false
  }
}

/** The address that `networkOf` reads. The function is synchronous, so all calls can use one object. */
const given = new Address()

/**
 * Returns a text for the network of an address, which usually belongs to a single party: the address itself
 * for IPv4, and its first 64 bits for IPv6. Returns `undefined` if `text` is no plain address. Brackets
 * around an IPv6 address are ignored.
 */
export function networkOf(text: string): string | undefined {
  if (!given.read(text.startsWith('[') ? text.slice(1, -1) : text)) return undefined
  const { groups } = given
  const isIpv4 = groups[ipv4Start - 1] === ipv4Mark && groups.subarray(0, ipv4Start - 1).every(isZero)
  return isIpv4 ? groups.subarray(ipv4Start).join('.') : groups.subarray(0, 4).join(':')
}

const isZero = (group: number): boolean => group === 0

type Groups = Address['groups']
type Words = Address['words']

/**
 * A range of addresses. An address is in the range if it equals `network` in all bits that are set in `mask`.
 */
export type AddressRange = { readonly network: Words; readonly mask: Words }

/**
 * Returns true if an address is in a range. The last word is compared first, because most ranges are ranges
 * of IPv4, and IPv4 addresses differ only in the last word.
 */
function isWithin(words: Words, { network, mask }: AddressRange): boolean {
  for (let index = wordCount - 1; index >= 0; index--) {
    const differing = (words[index] ?? 0) ^ (network[index] ?? 0)
    if ((differing & (mask[index] ?? 0)) !== 0) return false
  }
  return true
}

/**
 * Reads a range such as `10.0.0.0/8` or `fd00::/8`. A single address is read as a range of one address.
 * Throws if the text is neither a range nor an address.
 */
export function rangeOf(cidr: string): AddressRange {
  const [network = '', prefix, ...rest] = cidr.split('/')
  const address = new Address()
  const isIpv4 = !network.includes(':')
  const most = isIpv4 ? bitsOfIpv4 : groupCount * bitsOfGroup
  // Number('') is 0. So without this check, `10.0.0.0/` would be the range of all addresses.
  const bits = prefix === undefined ? most : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN
  if (!address.read(network) || !(bits <= most) || rest.length > 0) {
    throw new Error(`${cidr} is no range of addresses`)
  }
  const mask = maskOf(isIpv4 ? groupCount * bitsOfGroup - bitsOfIpv4 + bits : bits)
  return { network: address.words, mask }
}

function maskOf(bits: number): Words {
  const mask = new Address()
  for (let group = 0; group < groupCount; group++) {
    const set = Math.min(Math.max(bits - group * bitsOfGroup, 0), bitsOfGroup)
    mask.groups[group] = 0xffff << (bitsOfGroup - set)
  }
  return mask.words
}

const dot = 0x2e
const zero = 0x30

/**
 * Reads an IPv4 address into two groups. The address is the part of `text` from the index `from` to the end.
 */
function readIpv4(text: string, from: number, groups: Groups, at: number): boolean {
  let octets = 0
  let value = 0
  let digits = 0
  for (let index = from; index <= text.length; index++) {
    const code = index === text.length ? dot : text.charCodeAt(index)
    if (code === dot) {
      if (digits === 0 || octets === 4) return false
      const group = at + (octets >> 1)
      groups[group] = octets % 2 === 0 ? value << 8 : (groups[group] ?? 0) | value
      octets++
      value = 0
      digits = 0
    } else {
      const digit = code - zero
      const isLeadingZero = digits > 0 && value === 0
      if (digit < 0 || digit > 9 || isLeadingZero) return false
      value = value * 10 + digit
      if (value > 255) return false
      digits++
    }
  }
  return octets === 4
}

/** Reads an IPv6 address (RFC 4291, section 2.2). `groups` must all be zero. */
function readIpv6(text: string, groups: Groups): boolean {
  let count = 0
  /** The number of groups before `::`. -1: no `::` was found. */
  let gap = -1
  let at = 0
  if (text.startsWith('::')) {
    gap = 0
    at = 2
  }
  while (at < text.length) {
    if (count === groupCount) return false
    const colon = text.indexOf(':', at)
    const end = colon === -1 ? text.length : colon
    if (colon === -1 && text.includes('.', at)) {
      if (count > ipv4Start || !readIpv4(text, at, groups, count)) return false
      count += 2
      break
    }
    if (!readGroup(text, at, end, groups, count)) return false
    count++
    if (colon === -1) break
    at = colon + 1
    if (at === text.length) return false
    if (text[at] === ':') {
      if (gap !== -1) return false
      gap = count
      at++
    }
  }
  if (gap === -1) return count === groupCount
  if (count >= groupCount) return false
  const behindGap = count - gap
  groups.copyWithin(groupCount - behindGap, gap, count)
  groups.fill(0, gap, groupCount - behindGap)
  return true
}

function readGroup(text: string, from: number, to: number, groups: Groups, at: number): boolean {
  if (to === from || to - from > 4) return false
  let value = 0
  for (let index = from; index < to; index++) {
    const digit = hexDigit(text.charCodeAt(index))
    if (digit === -1) return false
    value = value * 16 + digit
  }
  groups[at] = value
  return true
}

/** Returns the value of a hexadecimal digit, or -1 for any other character. */
function hexDigit(code: number): number {
  if (code >= zero && code <= 0x39) return code - zero
  const letter = code | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}
