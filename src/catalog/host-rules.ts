import { type AddressPolicy, isRefusedHost } from '../address/policy.ts'
import type { Breach } from './hook-rules.ts'

/**
 * Checks the host of a hook without a DNS lookup. The host must not be an address that isn't allowed, and
 * must not be a name of this machine. The addresses of all other names are checked each time a connection is
 * made. The breach quotes no part of the URL.
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
