/** How many servers' sessions are kept: of 2 KiB or so each. */
const maxServers = 10_000
/** A server says how long its session is. One that is longer isn't kept. */
const maxSessionBytes = 8 * 1024
/**
 * How long sessions are resumed, one after the other, before the server has to show its certificate again:
 * one that has expired or is no longer trusted isn't seen before.
 */
const maxAgeMs = 3_600_000

type Kept = { readonly session: Buffer; readonly provenMs: number }

/**
 * The last session of TLS that each server gave, with which the next connection to it costs neither side the
 * handshake's signatures. A server is whoever has a name and a port of its own: none is offered what another
 * one gave.
 */
export class TlsSessions {
  readonly #now: () => number
  /** That of the server that gave none for the longest time is the first. */
  readonly #kept = new Map<string, Kept>()

  constructor(now: () => number) {
    this.#now = now
  }

  of(server: string): Buffer | undefined {
    const kept = this.#kept.get(server)
    if (kept === undefined) return undefined
    if (this.#now() - kept.provenMs < maxAgeMs) return kept.session
    this.#kept.delete(server)
    return undefined
  }

  /**
   * `isResumed`: the connection on which it came had itself been made with an earlier session, and without a
   * certificate.
   */
  keep(server: string, session: Buffer, isResumed: boolean): void {
    if (session.length > maxSessionBytes) return
    const earlier = this.#kept.get(server)
    // Of a session that is no longer known the certificate may have been shown at any time.
    if (isResumed && earlier === undefined) return
    const provenMs = isResumed && earlier !== undefined ? earlier.provenMs : this.#now()
    this.#kept.delete(server)
    this.#kept.set(server, { session, provenMs })
    const [first] = this.#kept.size > maxServers ? this.#kept.keys() : []
    if (first !== undefined) this.#kept.delete(first)
  }

  /** A connection could not be made with it. */
  forget(server: string): void {
    this.#kept.delete(server)
  }
}
