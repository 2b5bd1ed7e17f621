import { Server as NetServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { type Answer, answerHeaders, problem, success } from './answer.ts'
import { apiRoutes, browserRoutes } from './api.ts'
import { type RequestAddress, bodyOfPixel, pixelGif, settingsOf } from './browser.ts'
import { plainAddress, proxiesIn } from './client-address.ts'
import { answerClientError, OpenAnswers } from './client-error.ts'
import { isTrackingKind } from './item.ts'
import { docsPage, docsPolicy } from './docs-page.ts'
import { closeGracefullyAfterAnswer } from './graceful-close.ts'
import type { CallName, GatewayObserver } from './gateway-events.ts'
import { openApiDocument } from './gateway-openapi.ts'
import { preflightHeaders } from './preflight.ts'
import { type Received, Receiver, type Reception, RefusedBody } from './receive.ts'
import type { ServerCalls } from './server-calls.ts'
import type { Sources } from './sources.ts'
import type { GatewayTracing, RequestTrace } from './request-tracing.ts'
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

/** Without a body where none was announced. */
type ReceivedRequest = { Body: Received | undefined }

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
const pollMs = 20
/** When nothing has been open for so long, what is left are connections that nobody uses. */
const quietMs = 200

/**
 * The gateway's HTTP: paths with doubled and trailing slashes too, never a redirect, CORS for everyone. What
 * a client calls the type of its body says nothing (SEGMENT.md), so all types are read as JSON.
 */
export function createGatewayServer(options: GatewayServerOptions): GatewayServer {
  const { sources, tracking, serverCalls, observer, tracing } = options
  const { requestTimeoutMs, maxConnections, addIp } = options
  const receiver = new Receiver(options.receiveBytes)
  const state = { isRetired: false, open: 0 }
  const answers = new OpenAnswers()
  const isTrusted = proxiesIn(options.trustedProxies)
  const server = fastify({
    logger: false,
    routerOptions: { ignoreDuplicateSlashes: true, ignoreTrailingSlash: true },
    requestTimeout: requestTimeoutMs,
    // Requests that come while it closes are answered as always, with `Connection: close`.
    return503OnClosing: false,
    trustProxy: isTrusted,
    clientErrorHandler: (error, socket) => void answerClientError(error, socket, answers),
    // A path that can't be decoded.
    frameworkErrors: (_error, _request, reply) => void answerNotFound(reply),
    http: {
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: lookEveryMs,
    },
  })
  server.server.maxConnections = maxConnections
  server.server.on('request', ({ socket }, response) => {
    state.open++
    answers.add(socket, response)
    response.once('close', () => state.open--)
  })

  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', (request, payload, done) =>
    receiver.receive(payload, receptionOf(request), done),
  )
  server.addHook('onRequest', (request, _reply, done) => {
    // Fastify refuses a type that it can't read, and a QUERY without one.
    request.raw.headers['content-type'] = 'application/json'
    done()
  })

  function send(reply: FastifyReply, { status, body, retryAfterS }: Answer): FastifyReply {
    reply.code(status).headers(answerHeaders)
    if (retryAfterS !== undefined) reply.header('retry-after', String(retryAfterS))
    if (state.isRetired) reply.header('connection', 'close')
    return reply.send(body)
  }

  function answerNotFound(reply: FastifyReply): FastifyReply {
    observer.answered('other', notFound.status, 0)
    return send(reply, notFound)
  }

  /** By the head alone: what is refused anyway, or thrown away, isn't kept until it is complete. */
  function receptionOf({ routeOptions, headers }: FastifyRequest): Reception {
    const { call = 'other' } = routeOptions.config
    switch (call) {
      case 'deletions':
      case 'audience_changes':
        return serverCalls.refusal(headers.authorization) ?? 'keep'
      default:
        return isTrackingKind(call) || call === 'batch'
          ? (tracking.refusal(headers.authorization) ?? 'keep')
          : 'discard'
    }
  }

  async function handle(
    call: CallName,
    request: FastifyRequest<ReceivedRequest>,
    trace?: RequestTrace,
  ): Promise<Answer> {
    const sent = request.body ?? Buffer.alloc(0)
    // Refused by its head: no error of Fastify's, after which it would close the connection.
    if (!Buffer.isBuffer(sent)) return sent
    // It isn't kept while the answer is waited for.
    request.body = undefined
    const { authorization } = request.headers
    switch (call) {
      case 'metrics':
        return success
      case 'deletions':
        return serverCalls.deletion(sent, authorization, trace)
      case 'audience_changes':
        return serverCalls.audienceChanges(sent, authorization, trace)
      default:
        return isTrackingKind(call) || call === 'batch'
          ? tracking.handle(call, sent, authorization, ipOf(request), trace)
          : notFound
    }
  }

  /** By `X-Forwarded-For` where the connection is that of a trusted proxy. */
  function ipOf({ ip }: { ip: string }): string | undefined {
    return addIp ? plainAddress(ip) : undefined
  }

  function approachOf({ headers, socket }: FastifyRequest): RequestAddress {
    const isBelieved = isTrusted !== false && isTrusted(socket.remoteAddress ?? '')
    const forwarded = String(headers['x-forwarded-proto']).split(',').at(-1)?.trim()
    const isKnown = isBelieved && (forwarded === 'http' || forwarded === 'https')
    return { host: headers.host, protocol: isKnown ? forwarded : undefined }
  }

  for (const { call, paths } of apiRoutes) {
    for (const path of paths) {
      server.post<ReceivedRequest>(path, { config: { call } }, async (request, reply) => {
        const startMs = performance.now()
        const answer =
          tracing === undefined
            ? await handle(call, request)
            : await traced(tracing.begin('POST', path, request.headers), (trace) =>
                handle(call, request, trace),
              )
        observer.answered(call, answer.status, performance.now() - startMs)
        return send(reply, answer)
      })
    }
  }
  server.options('/v1/*', ({ headers }, reply) =>
    reply.code(204).headers(preflightHeaders(headers['access-control-request-headers'])).send(),
  )

  const { settings, pixel } = browserRoutes
  server.get<{ Params: { writeKey: string } }>(routeOf(settings.path), forBrowsers, (request, reply) => {
    const answer = settingsOf(sources, request.params.writeKey, approachOf(request))
    observer.answered('settings', answer.status, 0)
    if (answer.status === 200) reply.header('cache-control', settingsCaching)
    return send(reply, answer)
  })
  server.get<{ Params: { call: string }; Querystring: { data?: unknown } }>(
    routeOf(pixel.path),
    forBrowsers,
    async (request, reply) => {
      const startMs = performance.now()
      const { call } = request.params
      const answer = await traced(tracing?.begin('GET', pixel.path, request.headers), async (trace) =>
        isTrackingKind(call)
          ? tracking.handle(call, bodyOfPixel(request.query.data), undefined, ipOf(request), trace)
          : notFound,
      )
      // The image can't tell.
      observer.answered('pixel', answer.status, performance.now() - startMs)
      if (state.isRetired) reply.header('connection', 'close')
      return reply.headers(pixelHeaders).send(pixelGif)
    },
  )
  serveDocs(server)

  server.setNotFoundHandler((_request, reply) => answerNotFound(reply))
  server.setErrorHandler((error, request, reply) => {
    const isRefused = error instanceof RefusedBody
    if (!isRefused) observer.failed(error)
    else if (error.isEndless) closeGracefullyAfterAnswer(request.raw.socket)
    const answer = isRefused ? error.answer : internalError
    observer.answered(request.routeOptions.config.call ?? 'other', answer.status, 0)
    return send(reply, answer)
  })

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
      return state.open
    },
    retire() {
      state.isRetired = true
    },
    async stop(timeoutMs) {
      state.isRetired = true
      const deadlineMs = performance.now() + timeoutMs
      stopListening(server.server)
      let quietSinceMs = performance.now()
      while (performance.now() < deadlineMs && performance.now() - quietSinceMs < quietMs) {
        await delay(pollMs)
        if (state.open > 0) quietSinceMs = performance.now()
      }
      const closed = server.close()
      server.server.closeAllConnections()
      await closed
    },
  }
}

/** Does the work of a request, and tells its trace how it was answered. */
async function traced(
  trace: RequestTrace | undefined,
  work: (trace: RequestTrace | undefined) => Promise<Answer>,
): Promise<Answer> {
  let status: number = internalError.status
  try {
    const answer = await work(trace)
    status = answer.status
    return answer
  } finally {
    trace?.end(status)
  }
}

/**
 * Leaves the connections that there are: HTTP's own `close` would break off those that are idle at this
 * moment.
 */
function stopListening(server: FastifyInstance['server']): void {
  NetServer.prototype.close.call(server)
}

/** The API as a document, and as a page to read. */
function serveDocs(server: FastifyInstance): void {
  const document = JSON.stringify(openApiDocument())
  // The second is what the page finds beside itself at `/docs/`.
  for (const path of ['/openapi.json', '/docs/openapi.json']) {
    server.get(path, (_request, reply) => reply.headers(answerHeaders).send(document))
  }
  server.get('/docs', (_request, reply) =>
    reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', docsPolicy)
      .header('x-content-type-options', 'nosniff')
      .send(docsPage),
  )
}

/** Nothing is taken of a HEAD. */
const forBrowsers = { exposeHeadRoute: false }
/** As briefly as a change of the catalog may wait for. */
const settingsCaching = 'public, max-age=120'
const pixelHeaders = {
  'content-type': 'image/gif',
  'cache-control': 'no-store',
  'access-control-allow-origin': '*',
}

/** As the router writes the parameters of a path. */
function routeOf(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1')
}

const notFound = problem(
  'not_found',
  'There is nothing here. POST to /v1/batch and its neighbours; GET /docs tells more.',
)
const internalError = problem('internal_error', 'Something is wrong with the gateway. Send it again.')
