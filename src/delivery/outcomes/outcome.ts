/**
 * The outcome of one request to a hook. The list of kinds is fixed, because metric labels, log lines and
 * verdicts depend on it.
 */
export type Outcome =
  /**
   * An answer came. `body`: the beginning of the answer's body, in which the request's secrets are masked. It
   * is kept only if the answer is unsuccessful, and if the sender is set to keep bodies. `whole`: all of the
   * body that came, as it came. It is set only if the exchange reads whole answers.
   */
  | { kind: 'answer'; status: number; retryAfterMs?: number; body?: Uint8Array; whole?: Uint8Array }
  /** No complete response head came before the deadline, which counts from the start of the request. */
  | { kind: 'timeout' }
  /**
   * The connection could not be made, or was refused, reset or closed too early, or the answer wasn't HTTP.
   */
  | { kind: 'connection'; code: string }
  | { kind: 'dns'; code: string }
  /**
   * Our proxy failed. If `isDown` is true, the proxy fails for every hook. Nothing was sent, and nothing is
   * known about the hook.
   */
  | { kind: 'proxy'; code: string; isDown: boolean }
  /**
   * This process or its system may open no more files, so no connection was made. Nothing is known about the
   * hook.
   */
  | { kind: 'files'; code: string }
  /** The certificate isn't trusted; the request was never sent. */
  | { kind: 'certificate'; code: string }
  /** The address isn't allowed; no connection was made. */
  | { kind: 'address'; address: string }
  /**
   * There was no token to log in with: the token endpoint gave none. Nothing was sent, or the hook has
   * refused the token before.
   */
  | { kind: 'login'; detail: string }
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
    case 'files':
    case 'certificate':
      return `${outcome.kind} ${outcome.code}`
    case 'address':
      return `address not allowed: ${outcome.address} (delivery.allowAddresses)`
    case 'login':
      return `login failed: ${outcome.detail}`
    case 'request':
      return `request can't be sent: ${outcome.detail}`
  }
}

/**
 * Describes an outcome in a text that a customer may read. The text names no address that isn't allowed. If
 * it did, a customer could use a URL with an internal name to learn the private address of this name.
 */
export function describeForCustomer(outcome: Outcome): string {
  return outcome.kind === 'address' ? 'address not allowed' : describeOutcome(outcome)
}

/** An outcome for which the proxy, the system of this process, or a token endpoint is to blame. */
export type OwnFault = Extract<Outcome, { kind: 'proxy' | 'files' | 'login' }>

/**
 * Returns true if the proxy, the system of this process, or the login failed. Such an outcome says nothing
 * about the hook. An attempt with only such outcomes doesn't count.
 */
export function isOwnFault(outcome: Outcome): outcome is OwnFault {
  return outcome.kind === 'proxy' || outcome.kind === 'files' || outcome.kind === 'login'
}
