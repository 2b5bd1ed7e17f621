/**
 * The outcome of one request to a hook. The list of kinds is closed, because metric labels, log lines and
 * verdicts are made from it.
 */
export type Outcome =
  /**
   * `body`: the beginning of the answer's body, if it is kept. It is kept only if the answer is no success.
   * The request's secrets are masked in it.
   */
  | { kind: 'answer'; status: number; retryAfterMs?: number; body?: Uint8Array }
  /** No complete response head within the deadline, counted from the start of the connection. */
  | { kind: 'timeout' }
  /** A refused or reset connection, an early close, an answer that isn't HTTP, or no connection at all. */
  | { kind: 'connection'; code: string }
  | { kind: 'dns'; code: string }
  /**
   * Our proxy failed. If `isDown` is true, it fails for every hook. Nothing was sent, and nothing is known
   * about this hook.
   */
  | { kind: 'proxy'; code: string; isDown: boolean }
  /** The certificate isn't trusted; the request was never sent. */
  | { kind: 'certificate'; code: string }
  /** The address isn't allowed; no connection was made. */
  | { kind: 'address'; address: string }
  /** The request itself can't be sent, because HTTP forbids one of its headers or its path. */
  | { kind: 'request'; detail: string }

export type OutcomeKind = Outcome['kind']

/**
 * Describes an outcome in a short text. The headers of retried records, the logs and the delivery log all
 * have the same text.
 */
export function describeOutcome(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'answer':
      return `status ${outcome.status}`
    case 'timeout':
      return 'timeout'
    case 'connection':
    case 'dns':
    case 'proxy':
    case 'certificate':
      return `${outcome.kind} ${outcome.code}`
    case 'address':
      return `address not allowed: ${outcome.address} (delivery.allowAddresses)`
    case 'request':
      return `request can't be sent: ${outcome.detail}`
  }
}
