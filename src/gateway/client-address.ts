import { isIP, isIPv4 } from 'node:net'
import { Address, type AddressRange, rangeOf } from '../address/address.ts'

/**
 * Tells which addresses are those of trusted proxies, for one who walks `X-Forwarded-For` from its end: what
 * an untrusted address has written before itself is not looked at. `false` where there are none.
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
 * An address as messages have it: IPv4 as such also where a socket of IPv6 has it (`::ffff:192.0.2.1`), and
 * without the port or the brackets that some proxies write. `undefined` for what is none.
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
