import { constants } from 'node:crypto'
import { createSecureServer } from 'node:http2'
import { createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type TlsOptions, TLSSocket } from 'node:tls'
import { readRequests } from '../support/requests.ts'
import { readIdentities } from '../support/tls.ts'
import type { Counts, Ports, ServerName } from './server-process.ts'

/**
 * `node servers.ts IDENTITIES` starts one receiver of each kind of `ServerName`, each on its own port of
 * loopback. This process sends its parent the ports. It answers each message of its parent with the counts
 * since the message before.
 */

const [identity] = readIdentities(process.argv[2])
if (identity === undefined) throw new Error('a certificate is needed')

const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n'
const keeps = Buffer.from(`${head}\r\nok`)
const closes = Buffer.from(`${head}Connection: close\r\n\r\nok`)

const none: Counts = { requests: 0, connections: 0, resumed: 0 }
const counts: Record<ServerName, Counts> = {
  'plain kept': { ...none },
  plain: { ...none },
  'tls kept': { ...none },
  'tls 1.3': { ...none },
  'tls 1.3 full': { ...none },
  'tls 1.2': { ...none },
  'tls 1.2 full': { ...none },
  h2: { ...none },
}

/**
 * Returns a handler that answers each request on a connection. After the answer it closes the connection,
 * unless the server's name ends with `kept`.
 */
function serve(name: ServerName): (socket: Socket) => void {
  const isKept = name.endsWith('kept')
  return (socket) => {
    const count = counts[name]
    count.connections++
    if (socket instanceof TLSSocket && socket.isSessionReused()) count.resumed++
    readRequests(socket, () => {
      count.requests++
      if (isKept) socket.write(keeps)
      else socket.end(closes)
    })
  }
}

const v13: TlsOptions = { ...identity, minVersion: 'TLSv1.3' }
const v12: TlsOptions = { ...identity, maxVersion: 'TLSv1.2' }
/**
 * With these options the server can't resume the sessions that it issues, so each handshake is a full one.
 */
const forgetful: TlsOptions = { secureOptions: constants.SSL_OP_NO_TICKET }

const h2 = createSecureServer({ ...identity, minVersion: 'TLSv1.3' })
h2.on('session', () => void counts.h2.connections++)
h2.on('stream', (stream) => {
  counts.h2.requests++
  stream.resume()
  stream.on('error', () => undefined)
  stream.on('end', () => {
    stream.respond({ ':status': 200, 'content-type': 'text/plain' })
    stream.end('ok')
  })
})

const servers: Record<ServerName, Server> = {
  'plain kept': createTcpServer({ noDelay: true }, serve('plain kept')),
  plain: createTcpServer({ noDelay: true }, serve('plain')),
  'tls kept': createTlsServer({ ...v13, noDelay: true }, serve('tls kept')),
  'tls 1.3': createTlsServer(v13, serve('tls 1.3')),
  'tls 1.3 full': createTlsServer({ ...v13, ...forgetful }, serve('tls 1.3 full')),
  'tls 1.2': createTlsServer(v12, serve('tls 1.2')),
  'tls 1.2 full': createTlsServer({ ...v12, ...forgetful }, serve('tls 1.2 full')),
  h2,
}

const ports: Partial<Ports> = {}
for (const name of Object.keys(servers)) {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of this object
  const known = name as ServerName
  const server = servers[known]
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address === 'object' && address !== null) ports[known] = address.port
}
process.send?.(ports)
process.on('disconnect', () => process.exit(0))
process.on('message', () => {
  process.send?.(counts)
  for (const count of Object.values(counts)) Object.assign(count, none)
})
