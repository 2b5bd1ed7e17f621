import { fastify, type FastifyInstance } from 'fastify'
import { receptionOf, serveCalls } from './api-calls.ts'
import { serveBrowsers } from './browser-routes.ts'
import { answerClientError, OpenAnswers } from './client-error.ts'
import { GatewayDrain } from './gateway-drain.ts'
import type { CallName, GatewayObserver } from './gateway-events.ts'
import { closeGracefullyAfterAnswer } from './graceful-close.ts'
import { preflightHeaders } from './preflight.ts'
import { Receiver, RefusedBody } from './receive.ts'
import { internalError, Replies } from './replies.ts'
import { RequestOrigin } from './request-origin.ts'
import type { GatewayTracing } from './request-tracing.ts'
import type { ServerCalls } from './server-calls.ts'
import type { Sources } from './sources.ts'
import type { Tracking } from './tracking.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    call?: CallName
  }
}

export type GatewayServerOptions = {
  readonly sources: Sources
  readonly tracking: Tracking
  readonly serverCalls: ServerCalls
  readonly observer: GatewayObserver
  /** Absent: nothing is traced. */
  readonly tracing?: GatewayTracing | undefined
  /** Most bytes of bodies that are being received, of all requests together. */
  readonly receiveBytes: number
  /** How long a client may take for a whole request. */
  readonly requestTimeoutMs: number
  readonly maxConnections: number
  /** Whether messages get the address that they came from. */
  readonly addIp: boolean
  /** Ranges of addresses whose `X-Forwarded-…` headers are believed. */
  readonly trustedProxies: readonly string[]
}

/** What the routes of the gateway are answered with. */
export type GatewayParts = Pick<
  GatewayServerOptions,
  'sources' | 'tracking' | 'serverCalls' | 'observer' | 'tracing'
> & { readonly replies: Replies; readonly origin: RequestOrigin }

export type GatewayServer = {
  /** Gives the port; 0 picks a free one. Rejects when it can't be had. */
  listen(address: { host: string; port: number }): Promise<number>
  /** Bytes of bodies that aren't complete yet. */
  readonly receivingBytes: number
  /** Requests that aren't answered yet. */
  readonly open: number
  /**
   * From now on each answer is the last one of its connection (`Connection: close`); new connections are
   * taken as before.
   */
  retire(): void
  /**
   * Retires, takes no connection any more, answers what is there, and closes; at the latest after
   * `timeoutMs`. Connections that are idle are closed last, since a request may be on its way.
   */
  stop(timeoutMs: number): Promise<void>
}

const maxHeaderBytes = 16 * 1_024
/** How often connections are looked at for clients that are too slow. */
const lookEveryMs = 1_000

/**
 * The gateway's HTTP: paths with doubled and trailing slashes too, never a redirect, CORS for everyone. What
 * a client calls the type of its body says nothing (SEGMENT.md), so all types are read as JSON.
 */
export function createGatewayServer(options: GatewayServerOptions): GatewayServer {
  const receiver = new Receiver(options.receiveBytes)
  const drain = new GatewayDrain()
  const replies = new Replies(options.observer, drain)
  const origin = new RequestOrigin(options)
  const parts: GatewayParts = { ...options, replies, origin }
  const server = openHttp(options, { drain, replies, origin })
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', (request, payload, done) =>
    receiver.receive(payload, receptionOf(parts, request), done),
  )
  server.addHook('onRequest', (request, _reply, done) => {
    // Fastify refuses a type that it can't read, and a QUERY without one.
    request.raw.headers['content-type'] = 'application/json'
    done()
  })
  serveCalls(server, parts)
  server.options('/v1/*', ({ headers }, reply) =>
    reply.code(204).headers(preflightHeaders(headers['access-control-request-headers'])).send(),
  )
  serveBrowsers(server, parts)
  answerErrors(server, parts)

  return {
    async listen({ host, port }) {
      await server.listen({ host, port })
      const address = server.server.address()
      return typeof address === 'object' && address !== null ? address.port : port
    },
    get receivingBytes() {
      return receiver.bytes
    },
    get open() {
      return drain.open
    },
    retire: () => drain.retire(),
    stop: (timeoutMs) => drain.stop(server, timeoutMs),
  }
}

function openHttp(
  { requestTimeoutMs, maxConnections }: GatewayServerOptions,
  { drain, replies, origin }: { drain: GatewayDrain; replies: Replies; origin: RequestOrigin },
): FastifyInstance {
  const answers = new OpenAnswers()
  const server = fastify({
    logger: false,
    routerOptions: { ignoreDuplicateSlashes: true, ignoreTrailingSlash: true },
    requestTimeout: requestTimeoutMs,
    // Requests that come while it closes are answered as always, with `Connection: close`.
    return503OnClosing: false,
    trustProxy: origin.isTrusted,
    clientErrorHandler: (error, socket) => void answerClientError(error, socket, answers),
    // A path that can't be decoded.
    frameworkErrors: (_error, _request, reply) => void replies.sendNotFound(reply),
    http: {
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: lookEveryMs,
    },
  })
  server.server.maxConnections = maxConnections
  server.server.on('request', ({ socket }, response) => {
    answers.add(socket, response)
    drain.opened(response)
  })
  return server
}

function answerErrors(server: FastifyInstance, { observer, replies }: GatewayParts): void {
  server.setNotFoundHandler((_request, reply) => replies.sendNotFound(reply))
  server.setErrorHandler((error, request, reply) => {
    const isRefused = error instanceof RefusedBody
    if (!isRefused) observer.failed(error)
    else if (error.isEndless) closeGracefullyAfterAnswer(request.raw.socket)
    const answer = isRefused ? error.answer : internalError
    observer.answered(request.routeOptions.config.call ?? 'other', answer.status, 0)
    return replies.send(reply, answer)
  })
}
