import type { Outcome } from './outcome.ts'

/**
 * The meaning of an outcome for its hook. `retry.afterMs`: the hook asked for at least this wait. `final`:
 * this hook is never tried again for this message.
 */
export type Verdict = { kind: 'delivered' } | { kind: 'retry'; afterMs: number } | { kind: 'final' }

export type VerdictKind = Verdict['kind']

const delivered: Verdict = { kind: 'delivered' }
const retry: Verdict = { kind: 'retry', afterMs: 0 }
const final: Verdict = { kind: 'final' }

/** The 4xx statuses after which a later try may succeed: timeout, locked, too early, too many requests. */
const retriableClientErrors: ReadonlySet<number> = new Set([408, 423, 425, 429])

/** Judges one request. Pure; the table is in docs/architecture.md. */
export function judge(outcome: Outcome): Verdict {
  switch (outcome.kind) {
    case 'answer':
      return judgeStatus(outcome.status, outcome.retryAfterMs ?? 0)
    case 'timeout':
    case 'connection':
    case 'dns':
    case 'proxy':
      return retry
    case 'certificate':
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
