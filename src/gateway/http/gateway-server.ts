import type { Server } from 'node:http'
import { fastify, type FastifyInstance } from 'fastify'
import { receptionOf, serveCalls } from './api-calls.ts'
import { serveBrowsers } from './browser-routes.ts'
import { serveSigningKeys } from './signing-keys-route.ts'
import { answerClientError, malformed, OpenAnswers } from './client-error.ts'
import { GatewayDrain } from './gateway-drain.ts'
import type { CallName } from '../calls/gateway-events.ts'
import { closeGracefullyAfterAnswer } from './graceful-close.ts'
import { Receiver, RefusedBody } from './receive.ts'
import { internalError, Replies } from './replies.ts'
import { RequestOrigin } from './request-origin.ts'
import type { GatewayServerOptions, GatewayParts } from './gateway-parts.ts'
import { preflightHeaders } from './browser.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    call?: CallName
  }
}

export type GatewayServer = {
  /**
   * Starts listening and returns the port. If `port` is 0, the system chooses a free port. Rejects if the
   * address isn't available.
   */
  listen(address: { host: string; port: number }): Promise<number>
  /** Number of bytes that are held for bodies that aren't complete yet. */
  readonly receivingBytes: number
  /** Number of requests that haven't been answered yet. */
  readonly open: number
  readonly connections: number
  /**
   * From now on, closes each connection after its next answer (`Connection: close`). Still accepts new
   * connections.
   */
  retire(): void
  /**
   * Retires the server, accepts no new connection, waits until the open requests have been answered, and
   * closes the server. After `timeoutMs`, closes the server even if requests are still open. Idle connections
   * are closed only at the end, because a request may be arriving on them.
   */
  stop(timeoutMs: number): Promise<void>
}

const maxHeaderBytes = 16 * 1_024
/**
 * The limit on the unanswered requests of one connection. A client may send requests without waiting for
 * answers, and may never read an answer. Each such request takes 5 KB. Node stops reading from such a
 * connection only after it has answered, and by then, 64 KiB of input may have brought 2,000 requests.
 */
const maxOpenOfConnection = 100
/** The interval between two checks for clients that are too slow, in milliseconds. */
const lookEveryMs = 1_000

/**
 * The number of connections that may wait until they are accepted. The system limits it further
 * (`net.core.somaxconn`). With Node's default of 511, the system would drop connections when many clients
 * connect again at the same time, for example after a restart.
 */
const backlog = 4_096

/**
 * Creates the gateway's HTTP server. It accepts paths with doubled and trailing slashes, never redirects, and
 * allows CORS for every origin. It reads every body as JSON, and ignores the content type, because clients
 * often state a wrong one.
 */
export function createGatewayServer(options: GatewayServerOptions): GatewayServer {
  const receiver = new Receiver(options.receiveBytes)
  const drain = new GatewayDrain()
  const replies = new Replies(options.observer, drain)
  const origin = new RequestOrigin(options)
  const parts: GatewayParts = { ...options, replies, origin }
  const server = openHttp(options, { drain, replies, origin })
  const clients = countClients(server.server, options)
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', (request, payload, done) =>
    receiver.receive(payload, receptionOf(parts, request), done),
  )
  server.addHook('onRequest', (request, reply, done) => {
    // If a connection was closed because it had too many requests, the other requests of the same read still
    // come.
    if (request.raw.socket.destroyed) return void reply.hijack()
    if (request.raw.httpVersion === '1.1' && request.raw.headers.host === undefined) {
      replies.sendToNoCall(reply, malformed)
      return
    }
    // Without this, Fastify would refuse content types for which it has no parser, and QUERY requests without
    // a content type.
    request.raw.headers['content-type'] = 'application/json'
    done()
  })
  serveCalls(server, parts)
  server.options('/v1/*', ({ headers }, reply) =>
    reply
      .code(204)
      .headers(preflightHeaders(headers['access-control-request-headers'], headers.origin))
      .send(),
  )
  serveBrowsers(server, parts)
  serveSigningKeys(server, parts)
  answerErrors(server, parts)

  return {
    async listen({ host, port }) {
      await server.listen({ host, port, backlog })
      const address = server.server.address()
      return typeof address === 'object' && address !== null ? address.port : port
    },
    get receivingBytes() {
      return receiver.bytes
    },
    get open() {
      return drain.open
    },
    get connections() {
      return clients.count
    },
    retire: () => drain.retire(),
    stop: (timeoutMs) => drain.stop(server, timeoutMs),
  }
}

/** The default of `takenWithinMs`. A request waits at most a minute for Kafka (`gateway.ackTimeout`). */
const answerTakenWithinMs = 70_000
/** The longest write key in a path: 200 characters, each percent-encoded. */
const maxParamLength = 600

function openHttp(
  { requestTimeoutMs, takenWithinMs = answerTakenWithinMs, maxConnections, observer }: GatewayServerOptions,
  { drain, replies, origin }: { drain: GatewayDrain; replies: Replies; origin: RequestOrigin },
): FastifyInstance {
  const answers = new OpenAnswers()
  const server = fastify({
    logger: false,
    routerOptions: { ignoreDuplicateSlashes: true, ignoreTrailingSlash: true, maxParamLength },
    requestTimeout: requestTimeoutMs,
    // If no byte was sent or received on a connection for this time, the connection is closed. So a client
    // that never reads can't keep the gateway's answers in memory for longer.
    connectionTimeout: requestTimeoutMs + takenWithinMs,
    // While the server closes, requests are answered as usual, but with `Connection: close`.
    return503OnClosing: false,
    trustProxy: origin.isTrusted,
    clientErrorHandler: (error, socket) =>
      void answerClientError(error, socket, answers, ({ status, code }) =>
        observer.answered('other', status, 0, code),
      ),
    // Called when the path of a request can't be decoded.
    frameworkErrors: (_error, _request, reply) => void replies.sendNotFound(reply),
    http: {
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: lookEveryMs,
      // Node's own answer to a request without `Host` has no body.
      requireHostHeader: false,
    },
  })
  server.server.on('request', ({ socket }, response) => {
    answers.add(socket, response)
    const open = drain.opened(socket, response)
    // A client that waits for each answer has at most one open request on a connection. So if there are more
    // open requests than allowed connections, some clients don't wait. A connection of such a client is
    // closed.
    if (open > maxOpenOfConnection || (open > 1 && drain.open > maxConnections)) socket.destroy()
  })
  // Node's own answer to an unknown `Expect` has no body. The gateway answers such a request like any other.
  server.server.on('checkExpectation', (request, response) =>
    server.server.emit('request', request, response),
  )
  return server
}

/** Limits the connections of clients, and counts them. */
function countClients(
  server: Server,
  { maxConnections, observer }: Pick<GatewayServerOptions, 'maxConnections' | 'observer'>,
): { readonly count: number } {
  const clients = { count: 0 }
  server.maxConnections = maxConnections
  server.on('connection', (socket) => {
    clients.count++
    socket.once('close', () => clients.count--)
  })
  server.on('drop', () => observer.connectionRefused())
  return clients
}

function answerErrors(server: FastifyInstance, { observer, replies }: GatewayParts): void {
  server.setNotFoundHandler((_request, reply) => replies.sendNotFound(reply))
  server.setErrorHandler((error, request, reply) => {
    const isRefused = error instanceof RefusedBody
    if (!isRefused) observer.failed(error)
    else if (error.isEndless) closeGracefullyAfterAnswer(request.raw.socket)
    const answer = isRefused ? error.answer : internalError
    observer.answered(request.routeOptions.config.call ?? 'other', answer.status, 0, answer.code)
    return replies.send(reply, answer)
  })
}
