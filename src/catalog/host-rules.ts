import { type AddressPolicy, isRefusedHost } from '../address/policy.ts'
import type { Breach } from './hook-rules.ts'

/**
 * Checks the host of a hook, as far as the URL tells. The host must not be an address that isn't allowed, or
 * a name of this machine. Delivery checks the addresses of all other names each time that it connects. The
 * breach quotes no part of the URL.
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
