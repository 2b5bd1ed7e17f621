import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls'
import { buildConnector } from 'undici'
import { tlsOptions } from './tls-options.ts'
import { TlsSessions } from './tls-sessions.ts'

/**
 * undici's connector for `https:`, with our `tlsOptions` and the certificates that Node trusts (its own, and
 * those of `NODE_EXTRA_CA_CERTS`). All connections have one `SecureContext`, made with the first of them:
 * Node would make one for each.
 *
 * Sessions are resumed out of `TlsSessions`: undici keeps those of a hundred names, whatever their ports are,
 * and only until the garbage collector comes by.
 */
export function createTlsConnector(
  options: buildConnector.BuildOptions,
  now: () => number = () => performance.now(),
): buildConnector.connector {
  const sessions = new TlsSessions(now)
  let secureContext: SecureContext | undefined
  return (to, callback) => {
    const server = `${to.servername ?? ''} ${to.hostname}:${to.port}`
    const session = sessions.of(server)
    secureContext ??= createSecureContext(tlsOptions)
    const own = { ...options, secureContext, maxCachedSessions: 0 }
    // One for each connection, since it takes a session only when it is built.
    const connect = buildConnector(session === undefined ? own : { ...own, session })
    connect(to, (...result) => {
      const [error, socket] = result
      if (socket instanceof TLSSocket) keepSessionsOf(socket, server)
      // A session that a server can't do with must not stand in the way of the next connection.
      else if (error !== null) sessions.forget(server)
      callback(...result)
    })
  }

  /** Before the first of them: none comes until the certificate has been verified. */
  function keepSessionsOf(socket: TLSSocket, server: string): void {
    const isResumed = socket.isSessionReused()
    socket.on('session', (session) => sessions.keep(server, session, isResumed))
  }
}
