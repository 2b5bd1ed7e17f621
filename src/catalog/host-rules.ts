import { type AddressPolicy, isRefusedHost } from '../address/policy.ts'
import type { Breach } from './hook-rules.ts'

/**
 * Checks the host of a hook without a DNS lookup. If the host is an address, the address must be allowed. If
 * it is a name of this machine (`localhost`), a loopback address must be allowed. The addresses of all other
 * names are checked each time a connection is made. The breach quotes no part of the URL.
 *
 * `origin` is in normal form, such as `https://example.com:8443`.
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
