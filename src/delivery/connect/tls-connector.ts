import {
  createSecureContext,
  DEFAULT_CIPHERS,
  type SecureContext,
  type SecureContextOptions,
  TLSSocket,
} from 'node:tls'
import buildConnector from 'undici/lib/core/connect.js'
import { isFileShortage, codeOf } from './file-shortage.ts'
import type { Connector } from './host-addresses.ts'
import { TlsSessions } from './tls-sessions.ts'
import { constants } from 'node:crypto'
import type { HookTls } from '../../catalog/features/hook-tls.ts'

/**
 * Creates undici's connector for `https:`. It uses our `tlsOptions`, and trusts Node's own certificates and
 * those of `NODE_EXTRA_CA_CERTS`. All connections share one `SecureContext`, which is made for the first
 * connection. Otherwise Node would make a context for each connection.
 *
 * `own`: a client certificate, and authorities that are trusted instead. A connector with them is for one
 * hook, so no other server sees the certificate, and no session is resumed under another one.
 *
 * Sessions are kept in `TlsSessions`, not in undici's own cache. undici's cache has room for only a hundred
 * names, doesn't distinguish ports, and loses its sessions at the next garbage collection.
 */
export function createTlsConnector(
  options: buildConnector.BuildOptions,
  own: HookTls | undefined,
  now: () => number = () => performance.now(),
): Connector {
  const sessions = new TlsSessions(now)
  let secureContext: SecureContext | undefined
  return (to, callback) => {
    const server = `${to.servername ?? ''} ${to.hostname}:${to.port}`
    const session = sessions.of(server)
    try {
      secureContext ??= createSecureContext(own === undefined ? tlsOptions : optionsOf(own))
    } catch (error) {
      // The catalog refuses what TLS does. But what TLS accepts may differ from machine to machine.
      callback(error instanceof Error ? error : new Error(String(error)), null)
      return
    }
    const { lookup } = to
    const ofThis = {
      ...options,
      ...(lookup !== undefined && { lookup }),
      secureContext,
      maxCachedSessions: 0,
    }
    // Each connection needs its own connector, because a connector takes a session and a `lookup` only when
    // the connector is built.
    const connect = buildConnector(session === undefined ? ofThis : { ...ofThis, session })
    connect(to, (...result) => {
      const [error, socket] = result
      if (socket instanceof TLSSocket) keepSessionsOf(socket, server)
      // A session that the server can't use must not make the next connection fail too.
      else if (error !== null && !isFileShortage(codeOf(error))) sessions.forget(server)
      callback(...result)
    })
  }

  /**
   * Keeps the sessions that arrive on a socket. Call this function before the first session arrives. Node
   * passes on no session before it has verified the certificate.
   */
  function keepSessionsOf(socket: TLSSocket, server: string): void {
    const isResumed = socket.isSessionReused()
    socket.on('session', (session) => sessions.keep(server, session, isResumed))
  }
}

/**
 * TLS options that limit how much computation a server can demand. Handshakes are computed on the thread that
 * serves all customers.
 *
 * The options exclude Diffie-Hellman with groups that the server chooses freely (DHE in TLS 1.2). A handshake
 * with a group of 8,192 bits blocks the thread for a third of a second, even if the server's certificate
 * isn't trusted. Elliptic curves, RSA, and TLS 1.3 with its fixed groups remain allowed. The options also
 * exclude renegotiation, which is another handshake on the same connection. With renegotiation, a server
 * could demand an endless series of handshakes.
 */
const tlsOptions = {
  ciphers: `${DEFAULT_CIPHERS}:!kDHE`,
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
} as const

function optionsOf({ certificate, key, ca }: HookTls): SecureContextOptions {
  return {
    ...tlsOptions,
    ...(certificate !== undefined && { cert: certificate }),
    ...(key !== undefined && { key }),
    ...(ca !== undefined && { ca }),
  }
}
