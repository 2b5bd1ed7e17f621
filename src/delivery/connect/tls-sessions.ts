/** Number of servers whose sessions are kept. A session takes about 2 KiB. */
const maxServers = 10_000
/** The server chooses how long a session is. Sessions longer than this limit aren't kept. */
const maxSessionBytes = 8 * 1024
/**
 * The time in milliseconds after which a server has to show its certificate again. Until then, sessions with
 * the server may be resumed without a certificate. So it can take this time until Sluice notices that a
 * certificate has expired or is no longer trusted. To this comes the age of a connection (`maxAgeMs` in
 * `connection.ts`).
 */
const maxAgeMs = 600_000

type Kept = { readonly session: Buffer; readonly provenMs: number }

/**
 * The last TLS session of each server. The next connection to the server resumes the session, so neither side
 * has to compute the signatures of a full handshake. A server is a name with a port. A session is offered
 * only to the server from which it came.
 */
export class TlsSessions {
  readonly #now: () => number
  /** Sessions by server. The first entry is the server that has sent no new session for the longest time. */
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
   * Keeps a session. `isResumed`: true if the session came on a connection that had itself resumed an earlier
   * session. On such a connection, the server shows no certificate.
   */
  keep(server: string, session: Buffer, isResumed: boolean): void {
    if (session.length > maxSessionBytes) return
    const earlier = this.#kept.get(server)
    // The entry of the earlier session is gone, so it isn't known when the certificate was last shown.
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
