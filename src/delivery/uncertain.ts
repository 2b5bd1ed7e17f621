import type { Outcome } from './outcome.ts'

/**
 * Returns true if a server may have acted on a request, or may still do so late, although it didn't say so.
 * That is the case after a 5xx, or without an answer to a request whose writing had begun (a timeout, a
 * reset). A success or a refusal (3xx, 4xx) is certain if it answers everything that was sent. So is a
 * refused connection, a name, a certificate or an address, because nothing was sent. Pure.
 *
 * `mayHaveArrived`: some byte of the request was written, now or on a stale connection that lost it, and was
 * not answered.
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
