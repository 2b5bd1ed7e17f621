import { type AddressPolicy, isRefusedHost } from '../address/policy.ts'
import type { Breach } from './hook-rules.ts'

/**
 * The rule of where a hook may be, as far as its URL says it: an address, or a name of this machine. Delivery
 * looks at what every other name leads to, each time that it connects. Quotes no part of the URL.
 *
 * `origin` is in normal form: `https://example.com:8443`.
 */
export function hostBreach(origin: string, policy: AddressPolicy): Breach | undefined {
  const host = URL.parse(origin)?.hostname ?? ''
  if (!isRefusedHost(host, policy)) return undefined
  return {
    problem: 'has an address that is not public',
    advice:
      'write a public host, or allow the address with delivery.allowAddresses (SLUICE_DELIVERY_ALLOW_ADDRESSES)',
  }
}
