import type { Outcome } from './outcome.ts'

/**
 * Returns true if a server may have acted on a request, or may still act on it late, although the server
 * didn't say so. That is the case after a 5xx, and after a request whose writing had begun and that got no
 * answer (a timeout, a reset). A success or a refusal (3xx, 4xx) is certain if it answers everything that was
 * sent. A refused connection, an unknown name, an untrusted certificate and a forbidden address are certain
 * too, because nothing was sent. Pure.
 *
 * `mayHaveArrived`: some byte of the request was written and not answered, on this connection or on a stale
 * one that lost the request.
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
