/** Number of servers whose sessions are kept. A session takes about 2 KiB. */
const maxServers = 10_000
/** Limit on the length of a session, which the server chooses. Longer sessions aren't kept. */
const maxSessionBytes = 8 * 1024
/**
 * The time for which a server may resume sessions after it has shown its certificate. After this time, the
 * server has to show its certificate again. If the certificate expires or is distrusted within this time,
 * this isn't noticed.
 */
const maxAgeMs = 3_600_000

type Kept = { readonly session: Buffer; readonly provenMs: number }

/**
 * The last TLS session of each server. The next connection to the server resumes the session, which saves
 * both sides the signatures of a full handshake. A server is a name with a port. A session is offered only to
 * the server from which it came.
 */
export class TlsSessions {
  readonly #now: () => number
  /**
   * Sessions by server. The first session in the map is of the server that has sent no new session for the
   * longest time.
   */
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
   * Keeps a session. `isResumed`: true if the connection on which the session came had itself resumed an
   * earlier session, so that no certificate was shown.
   */
  keep(server: string, session: Buffer, isResumed: boolean): void {
    if (session.length > maxSessionBytes) return
    const earlier = this.#kept.get(server)
    // There is no entry for the earlier session any more, so it isn't known when the certificate was last
    // shown.
    if (isResumed && earlier === undefined) return
    const provenMs = isResumed && earlier !== undefined ? earlier.provenMs : this.#now()
    this.#kept.delete(server)
    this.#kept.set(server, { session, provenMs })
    const [first] = this.#kept.size > maxServers ? this.#kept.keys() : []
    if (first !== undefined) this.#kept.delete(first)
  }

  /** Drops the session of a server to which a connection could not be made. */
  forget(server: string): void {
    this.#kept.delete(server)
  }
}
