import { everything } from '../../src/admin/scope.ts'
import type { AdminRequest } from '../../src/admin/server.ts'

/** A token for the whole installation, without an end. */
const wholeToken = {
  name: 'ann',
  right: 'admin',
  seesContent: true,
  scope: everything,
  endsAtMs: undefined,
  family: 'ann',
  digest: Buffer.alloc(32),
} as const

/** Returns a request to the admin API, as its server hands it to a call. */
export function adminRequest(given: Partial<AdminRequest> = {}): AdminRequest {
  return {
    params: {},
    query: {},
    body: undefined,
    conditions: { ifMatch: undefined, ifNoneMatch: undefined },
    token: wholeToken,
    caller: { address: '127.0.0.1', secret: undefined, keep: () => ({}) },
    isInForce: () => true,
    ...given,
  }
}
