import type { Outcome } from './outcome.ts'

/**
 * What the outcome of a request says about the load of its server.
 *
 * - `answered`: the server did its work, with success or without.
 * - `overloaded`: the server may have more requests than it can take. It didn't answer in time, closed or
 *   reset the connection, or answered 503.
 * - `throttled`: the server says that it gets too many requests (429).
 * - `nothing`: the request says nothing about load, for example because nothing listens at the port.
 */
export type LoadSign = 'answered' | 'overloaded' | 'throttled' | 'nothing'

/** Codes for a connection that was lost. A server under load resets connections, or closes them. */
const lostCodes: ReadonlySet<string> = new Set(['ECONNABORTED', 'ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])

export function loadSignOf(outcome: Outcome): LoadSign {
  switch (outcome.kind) {
    case 'answer':
      if (outcome.status === 429) return 'throttled'
      return outcome.status === 503 ? 'overloaded' : 'answered'
    case 'timeout':
      return 'overloaded'
    case 'connection':
      return isLostCode(outcome.code) ? 'overloaded' : 'nothing'
    case 'dns':
    case 'proxy':
    case 'files':
    case 'login':
    case 'certificate':
    case 'address':
    case 'request':
      return 'nothing'
  }
}

/** Returns true if a connection with this error code was lost after it had been open. */
export function isLostCode(code: string): boolean {
  return lostCodes.has(code)
}
