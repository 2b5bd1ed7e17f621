import { isIP, isIPv4 } from 'node:net'
import { Address, type AddressRange, rangeOf } from '../address/address.ts'

/**
 * Returns a function that tells whether an address is that of a trusted proxy. If no proxies are trusted,
 * returns `false` instead. Fastify calls the function for each address in `X-Forwarded-For`, from the last to
 * the first. The first address for which the function returns false is the client's address.
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
 * Normalizes an address for `context.ip`. Changes an IPv4 address in its mapped IPv6 form
 * (`::ffff:192.0.2.1`) to plain IPv4. Removes the port and the brackets that some proxies add. Returns
 * `undefined` if the text is no address.
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
