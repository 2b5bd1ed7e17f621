import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { anywhere } from './anywhere.ts'
import type { Identity } from './certificates.ts'

/** Customers' servers. They are real servers on a free port of 127.0.0.1. */

/** A request as the server received it. */
export type ReceivedRequest = {
  method: string
  /** The path, with the query. */
  path: string
  headers: IncomingHttpHeaders
  /** The headers as they were written, in the order name, value, name, value. */
  rawHeaders: readonly string[]
  body: Buffer
  /** The time when the request's body was complete, in epoch milliseconds. */
  atMs: number
}

/**
 * Handles a request. A script may leave the request without an answer. `nth` is the number of the request
 * among those of its path, from 1.
 */
export type Script = (request: ReceivedRequest, response: ServerResponse, nth: number) => void

export type Receiver = {
  /** The server's origin, such as `http://127.0.0.1:PORT`. It starts with `https` if the server has a certificate. */
  origin: string
  port: number
  /** All requests so far, in order. */
  requests: readonly ReceivedRequest[]
  requestsTo(path: string): ReceivedRequest[]
  /** The number of TCP connections that were accepted so far. */
  readonly connections: number
  /** The number of those that are open. */
  readonly open: number
  stop(): Promise<void>
}

/** Returns a script that answers with a status at once. */
export function answer(status: number, headers: Record<string, string> = {}, body = ''): Script {
  return (_request, response) => response.writeHead(status, headers).end(body)
}

/** A script that never answers. */
export const neverAnswer: Script = () => {}

/**
 * Returns a script that uses the first of `scripts` for the first request of a path, and so on. It uses the
 * last one for all later requests.
 */
export function inTurn(...scripts: Script[]): Script {
  return (request, response, nth) => scripts[Math.min(nth, scripts.length) - 1]?.(request, response, nth)
}

/**
 * Starts a server for HTTP, or for HTTPS if `identity` is given. A single script serves all paths. If there
 * is a script for each path, all other paths answer 404. If `isKept` is false, the server doesn't keep its
 * requests. This is for tests with a very large number of requests. `host` and `port`: where it listens.
 */
export async function startReceiver(
  scripts: Script | Record<string, Script> = answer(200),
  {
    identity,
    isKept = true,
    host = anywhere.host,
    port = anywhere.port,
  }: { identity?: Identity; isKept?: boolean; host?: string; port?: number } = {},
): Promise<Receiver> {
  const requests: ReceivedRequest[] = []
  const counts = new Map<string, number>()

  async function take(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await readRequest(incoming)
    if (isKept) requests.push(request)
    const nth = (counts.get(request.path) ?? 0) + 1
    counts.set(request.path, nth)
    const script = typeof scripts === 'function' ? scripts : (scripts[request.path] ?? answer(404))
    script(request, response, nth)
  }

  const onRequest = (incoming: IncomingMessage, response: ServerResponse): void => {
    // A client may close the connection in the middle of its request. That isn't this server's fault.
    take(incoming, response).catch(() => response.destroy())
  }
  const server = identity === undefined ? createServer(onRequest) : createSecureServer(identity, onRequest)
  const listening = await listen(server, { host, port })
  return {
    origin: `${identity === undefined ? 'http' : 'https'}://${host}:${listening.port}`,
    port: listening.port,
    requests,
    requestsTo: (path) => requests.filter((request) => request.path === path),
    get connections() {
      return listening.connections
    },
    get open() {
      return listening.open
    },
    stop: () => listening.stop(),
  }
}

/** A server that reads and writes bytes, and knows nothing of HTTP. */
export type RawReceiver = {
  origin: string
  port: number
  readonly connections: number
  /** The number of bytes that clients have sent. With TLS, it counts the decrypted bytes. */
  readonly bytes: number
  stop(): Promise<void>
}

export type RawScript = {
  connected?: (socket: Socket) => void
  /** Is called when a connection has sent data. `received` is all that this connection has sent so far. */
  data?: (socket: Socket, received: Buffer) => void
}

/**
 * Starts a server that accepts connections, counts the bytes that arrive, and follows the script. It uses TLS
 * if `identity` is given.
 */
export async function startRawReceiver(
  script: RawScript = {},
  { identity }: { identity?: Identity } = {},
): Promise<RawReceiver> {
  let bytes = 0

  function take(socket: Socket): void {
    let received = Buffer.alloc(0)
    // About half of the scripts break connections, so errors are expected.
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      received = Buffer.concat([received, chunk])
      script.data?.(socket, received)
    })
    script.connected?.(socket)
  }

  const server = identity === undefined ? createTcpServer(take) : createTlsServer(identity, take)
  const listening = await listen(server)
  return {
    origin: `${identity === undefined ? 'http' : 'https'}://127.0.0.1:${listening.port}`,
    port: listening.port,
    get connections() {
      return listening.connections
    },
    get bytes() {
      return bytes
    },
    stop: () => listening.stop(),
  }
}

/** Returns true if a whole request has arrived: the head, and a body as long as the head says. */
export function isWholeRequest(received: Buffer): boolean {
  const headEnd = received.indexOf('\r\n\r\n')
  if (headEnd === -1) return false
  const length = /\r\ncontent-length: *(\d+)/i.exec(received.subarray(0, headEnd).toString('latin1'))?.[1]
  return received.length >= headEnd + 4 + Number(length ?? 0)
}

async function listen(
  server: Server,
  at: { host?: string; port?: number } = {},
): Promise<{ port: number; readonly connections: number; readonly open: number; stop(): Promise<void> }> {
  const sockets = new Set<Socket>()
  let connections = 0
  server.on('connection', (socket) => {
    connections++
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ ...anywhere, ...at }, resolve)
  })
  return {
    port: portOf(server),
    get connections() {
      return connections
    },
    get open() {
      return sockets.size
    },
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** Returns the port of a server. Throws if the server listens on no port. */
export function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server listens on no port')
  return address.port
}

async function readRequest(incoming: IncomingMessage): Promise<ReceivedRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(Buffer.from(chunk))
  return {
    method: incoming.method ?? '',
    path: incoming.url ?? '',
    headers: incoming.headers,
    rawHeaders: incoming.rawHeaders,
    body: Buffer.concat(chunks),
    atMs: Date.now(),
  }
}
