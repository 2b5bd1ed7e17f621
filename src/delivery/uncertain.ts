import type { Outcome } from './outcome.ts'

/**
 * Returns true if a server may have acted on a request, or may still act on it, without having confirmed it:
 *
 * - The result is true after a 5xx, and if at least part of the request was written and no answer came (a
 *   timeout, a reset).
 * - The result is false after a success or a refusal (3xx, 4xx). It is also false after a refused connection,
 *   an unknown name, an untrusted certificate or a forbidden address, because nothing was sent. But if an
 *   earlier connection lost the same request, the result is true in all of these cases.
 *
 * `mayHaveArrived`: true if part of the request was written and not answered. This may have been on the last
 * connection, or on an earlier connection that lost the request.
 */
export function isUncertain(outcome: Outcome, mayHaveArrived: boolean): boolean {
  switch (outcome.kind) {
    case 'answer':
      return outcome.status >= 500 || mayHaveArrived
    case 'timeout':
    case 'connection':
    case 'dns':
    case 'proxy':
    case 'files':
    case 'certificate':
    case 'address':
    case 'request':
      return mayHaveArrived
  }
}
