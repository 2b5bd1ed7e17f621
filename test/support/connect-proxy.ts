import { createServer, type IncomingHttpHeaders } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { portOf } from './receiver.ts'

/**
 * An HTTP proxy on 127.0.0.1 for tests. It answers only CONNECT. The test decides the answer and the target
 * of each tunnel.
 */

export type ConnectRequest = { authority: string; headers: IncomingHttpHeaders }

/**
 * The answer to a CONNECT. `port`: a tunnel to this port of 127.0.0.1. `status`: a refusal with this status.
 * `silence`: no answer. `close`: the connection is closed without an answer.
 */
export type ConnectReply =
  | { port: number }
  | { status: number; headers?: Readonly<Record<string, string>> }
  | 'silence'
  | 'close'

export type ConnectProxy = {
  port: number
  requests: readonly ConnectRequest[]
  /** The number of TCP connections so far. */
  readonly connections: number
  /** Returns all bytes that clients have sent through the tunnels to targets, as the proxy saw them. */
  sent(): Buffer
  stop(): Promise<void>
}

export async function startConnectProxy(
  reply: (request: ConnectRequest) => ConnectReply,
  { port = 0 }: { port?: number } = {},
): Promise<ConnectProxy> {
  const requests: ConnectRequest[] = []
  const sent: Buffer[] = []
  const sockets = new Set<Duplex>()
  let connections = 0

  function keep(socket: Duplex): void {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => sockets.delete(socket))
  }

  function tunnel(client: Duplex, head: Buffer, target: Socket): void {
    keep(target)
    target.once('connect', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      target.write(head)
      client.on('data', (chunk: Buffer) => {
        sent.push(chunk)
        target.write(chunk)
      })
      target.pipe(client)
    })
    client.once('close', () => target.destroy())
    target.once('close', () => client.destroy())
  }

  const server = createServer((_request, response) => response.writeHead(405).end())
  server.on('connection', (socket) => {
    connections++
    keep(socket)
  })
  server.on('connect', (incoming, client, head) => {
    const request = { authority: incoming.url ?? '', headers: incoming.headers }
    requests.push(request)
    const said = reply(request)
    if (said === 'close') client.destroy()
    else if (said === 'silence') return
    else if ('port' in said) tunnel(client, head, connect(said.port, '127.0.0.1'))
    else client.end(refusal(said))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return {
    port: portOf(server),
    requests,
    get connections() {
      return connections
    },
    sent: () => Buffer.concat(sent),
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

function refusal({
  status,
  headers = {},
}: {
  status: number
  headers?: Readonly<Record<string, string>>
}): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} Refused\r\n${lines.join('')}content-length: 0\r\n\r\n`
}
