import type { Outcome } from './outcome.ts'

/**
 * Whether a server may have acted on a request, or may still do so late, although it didn't say that it did:
 * a 5xx, or no answer to a request that was begun to be written (a timeout, a reset). Certain are a refused
 * connection, a name, a certificate or an address that nothing was sent to, and what is an answer to all that
 * was sent: a success, or a refusal (3xx, 4xx). Pure.
 *
 * `mayHaveArrived`: some byte of the request was written, now or by a stale connection that lost it, and
 * wasn't answered.
 */
export function isUncertain(outcome: Outcome, mayHaveArrived: boolean): boolean {
  switch (outcome.kind) {
    case 'answer':
      return outcome.status >= 500 || mayHaveArrived
    case 'timeout':
    case 'connection':
    case 'dns':
    case 'proxy':
    case 'certificate':
    case 'address':
    case 'request':
      return mayHaveArrived
  }
}
