import type { Outcome } from './outcome.ts'

/**
 * The meaning of an outcome for its hook. `retry`: a later try may succeed. `afterMs` is the wait in
 * milliseconds that the hook asked for, or 0. `final`: the message is never sent to this hook again.
 */
export type Verdict = { kind: 'delivered' } | { kind: 'retry'; afterMs: number } | { kind: 'final' }

export type VerdictKind = Verdict['kind']

const delivered: Verdict = { kind: 'delivered' }
const retry: Verdict = { kind: 'retry', afterMs: 0 }
const final: Verdict = { kind: 'final' }

/**
 * The 4xx statuses after which a later try may succeed: request timeout (408), locked (423), too early (425),
 * too many requests (429).
 */
const retriableClientErrors: ReadonlySet<number> = new Set([408, 423, 425, 429])

/**
 * Node's code for a self-signed certificate. Self-signed certificates aren't supported. If a certificate has
 * any other fault, the request is tried again, because such faults are often corrected within hours.
 */
const selfSigned = 'DEPTH_ZERO_SELF_SIGNED_CERT'

/** Returns the verdict on the outcome of one request. docs/architecture.md has a table of all verdicts. */
export function judge(outcome: Outcome): Verdict {
  switch (outcome.kind) {
    case 'answer':
      return judgeStatus(outcome.status, outcome.retryAfterMs ?? 0)
    case 'timeout':
    case 'connection':
    case 'dns':
    case 'proxy':
    case 'files':
    case 'login':
      return retry
    case 'certificate':
      return outcome.code === selfSigned ? final : retry
    case 'address':
    case 'request':
      return final
  }
}

function judgeStatus(status: number, retryAfterMs: number): Verdict {
  if (status >= 200 && status < 300) return delivered
  if (status === 429 || status === 503) return { kind: 'retry', afterMs: retryAfterMs }
  if (status >= 500 || retriableClientErrors.has(status)) return retry
  return final
}

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
    case 'login':
    case 'certificate':
    case 'address':
    case 'request':
      return mayHaveArrived
  }
}
