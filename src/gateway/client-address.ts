import { isIP, isIPv4 } from 'node:net'
import { Address, type AddressRange, rangeOf } from '../address/address.ts'

/**
 * Returns a function that returns true for the address of a trusted proxy. Returns `false` instead of a
 * function if no proxies are trusted. Fastify goes through the addresses in `X-Forwarded-For` from the last
 * to the first, and calls the function for each. It stops at the first address that isn't trusted. This is
 * the client's address.
 */
export function proxiesIn(cidrs: readonly string[]): false | ((address: string) => boolean) {
  if (cidrs.length === 0) return false
  const ranges: readonly AddressRange[] = cidrs.map(rangeOf)
  const scratch = new Address()
  return (address) => {
    const plain = plainAddress(address)
    return plain !== undefined && scratch.read(plain) && scratch.isWithinAny(ranges)
  }
}

/**
 * Normalizes an address for `context.ip`. An IPv4 address in its mapped IPv6 form (`::ffff:192.0.2.1`)
 * becomes plain IPv4. The port and the brackets that some proxies add are removed. Returns `undefined` if the
 * text is no address.
 */
export function plainAddress(text: string): string | undefined {
  const bare = withoutPort(text.trim())
  const mapped = /^::ffff:([\d.]+)$/i.exec(bare)?.[1]
  if (mapped !== undefined && isIPv4(mapped)) return mapped
  return isIP(bare) === 0 ? undefined : bare
}

function withoutPort(text: string): string {
  const [, bracketed] = /^\[([^\]]+)\](?::\d+)?$/.exec(text) ?? []
  if (bracketed !== undefined) return bracketed
  const [, ipv4] = /^([\d.]+):\d+$/.exec(text) ?? []
  return ipv4 ?? text
}
