import { createServer, type Server } from 'node:https'
import { TLSSocket } from 'node:tls'
import type { Authority } from './certificates.ts'

/** A message that came to a server, with the name in the certificate that was shown; '': none was shown. */
export type Shown = { id: string; subject: string }

/**
 * Starts a server that asks for a certificate of `authority`, on a port of 127.0.0.1. It adds each message
 * that comes to `shown`.
 */
export async function startMutualServer(authority: Authority, shown: Shown[]): Promise<Server> {
  const server = createServer(
    { ...authority.issue({ names: ['127.0.0.1'] }), ca: authority.cert, requestCert: true },
    (request, response) => {
      const { socket } = request
      const subject = socket instanceof TLSSocket ? String(socket.getPeerCertificate().subject?.CN) : ''
      let body = ''
      request.on('data', (chunk: Buffer) => (body += chunk.toString()))
      request.on('end', () => {
        shown.push({ id: JSON.parse(body).messageId, subject })
        response.end()
      })
    },
  )
  server.on('tlsClientError', () => undefined)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}
