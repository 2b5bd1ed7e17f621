import { withOwnKeys } from '../message/json/json.ts'
import type { Socket } from 'node:net'
import { fastify, type FastifyError, type FastifyReply, type FastifyRequest } from 'fastify'
import { measureStructure } from '../message/depth-and-keys.ts'
import { printable } from '../message/printable.ts'
import { Clients, type ClosedClient } from '../http/clients.ts'
import { adminOpenApi } from './openapi.ts'
import { type Approach, type BrowserOptions, Browsers, type Caller } from './console/browser.ts'
import { addConsole, type ConsoleOptions } from './console/pages.ts'
import { addSignIn, type BrowserSignIn } from './console/sign-in-pages.ts'
import { type AdminAnswer, missing, noToken, otherSite, problem } from './problem.ts'
import { isScoped, type TokenScope } from './scope.ts'
import { type AdminCall, type AdminRoute, isOpenToScopes } from './admin-route.ts'
import { adminRoutes } from './routes.ts'
import { idempotencyHeader } from './idempotency.ts'
import { mayUse } from './grants.ts'
import { seesTheSame, shareOf, type Token } from './tokens.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    admin?: AdminRoute
  }
}

/** The conditions of a change. `ifMatch`: the entity tag, as it was sent. */
export type Conditions = { readonly ifMatch: string | undefined; readonly ifNoneMatch: string | undefined }

/** The content of a request, checked against the schemas of its route. */
export type AdminRequest = {
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  readonly body: unknown
  readonly conditions: Conditions
  /** Absent: each request is carried out. */
  readonly idempotencyKey?: string | undefined
  /** What the request may do. Of an open route: nothing. */
  readonly token: Token
  readonly caller: Caller
  /** The id of the last server-sent event that a browser has seen before. */
  readonly lastEventId?: string | undefined
  /** Returns false once the token has ended or was revoked, which may be while a call waits. */
  readonly isInForce: () => boolean
}

export type AdminCalls = Readonly<Record<AdminCall, (request: AdminRequest) => Promise<AdminAnswer>>>

export type AdminServerOptions = {
  readonly calls: AdminCalls
  /** Finds a token that is in force now, by its text. */
  readonly findToken: (given: string) => Token | undefined
  /** Finds what a session may do now, by the secret in its cookie. */
  readonly findSession: (secret: string) => Token | undefined
  readonly browsers: BrowserOptions
  readonly console: Omit<ConsoleOptions, 'prefix'>
  /** Signs browsers in at an OpenID provider. Absent: only by token, code or link. */
  readonly provider?: BrowserSignIn | undefined
  /** Returns true if the catalog has a destination that a scope holds. */
  readonly sees: (scope: TokenScope, destinationId: string) => boolean
  /** Resolves once the catalog has the changes that this process has made. */
  readonly ownChanges?: () => Promise<void>
  /** Time that a client may take to send a whole request, in milliseconds. */
  readonly requestTimeoutMs: number
  readonly onAnswered: (call: AdminCall | 'other', status: number, by: string) => void
  /** Called when a connection is closed because of a limit. */
  readonly onClosed?: (why: ClosedClient) => void
  /** Called with the error if a request fails because of a bug in Sluice. */
  readonly onFault: (error: unknown) => void
}

const listings: ReadonlySet<AdminCall> = new Set([
  'list_destinations',
  'list_sources',
  'show_status',
  'preview_replay',
  'create_replay',
])

/** Tells whether a call looks into the catalog in force. Calls that change the catalog read its topic. */
function usesCatalog({ call, scope }: AdminRoute): boolean {
  return scope === 'destination' || listings.has(call)
}

export type AdminServer = {
  /**
   * Starts listening and returns the port. If `port` is 0, the system chooses a free port. Rejects if the
   * port isn't available.
   */
  listen(address: { host: string; port: number }): Promise<number>
  /**
   * Accepts no more connections, waits until all requests under way have been answered, and closes the
   * server. After `timeoutMs`, closes the server even if requests are still under way.
   */
  stop(timeoutMs: number): Promise<void>
}

const maxBodyBytes = 64 * 1024
/** How many bodies may be read at the same time whose route allows more than `maxBodyBytes`. */
const mostLargeBodies = 4
const maxHeaderBytes = 16 * 1024
/** The limit on the levels of a body. It has room for each message that `message.maxDepth` may allow. */
const maxBodyDepth = 1_010
const tooDeep = `Send a body with at most ${maxBodyDepth} levels of nested objects and arrays.`
/**
 * The limit on an answer. The calls themselves limit their answers to about 3 MB, except where somebody asks
 * for the counts of very many minutes.
 */
export const maxAnswerCharacters = 8 * 1_024 * 1_024
const lookEveryMs = 1_000
/** How long a client may take to read the answer to a request that can't be parsed, in milliseconds. */
const closeAfterMs = 1_000

export function createAdminServer(options: AdminServerOptions): AdminServer {
  return new Server(options)
}

function createFastify(
  { requestTimeoutMs, prefix }: { readonly requestTimeoutMs: number; readonly prefix: string },
  onUnreadable: (reply: FastifyReply) => void,
) {
  return fastify({
    logger: false,
    // A proxy may pass a path on with or without the prefix.
    rewriteUrl: ({ url = '' }) =>
      prefix !== '' && (url === prefix || /^[/?]/.test(url.slice(prefix.length))) && url.startsWith(prefix)
        ? `/${url.slice(prefix.length).replace(/^\//, '')}`
        : url,
    bodyLimit: maxBodyBytes,
    exposeHeadRoutes: false,
    requestTimeout: requestTimeoutMs,
    return503OnClosing: false,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: maxHeaderBytes },
    // Called if the path of a request can't be decoded or is too long.
    frameworkErrors: (_error, _request, reply) => onUnreadable(reply),
    clientErrorHandler: answerClientError,
    ajv: {
      customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false, strict: false },
    },
    http: {
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: lookEveryMs,
    },
  })
}

class Server implements AdminServer {
  readonly #options: AdminServerOptions
  readonly #server
  /** The token that each request carried. */
  readonly #holders = new WeakMap<FastifyRequest, Token>()
  readonly #clients: Clients
  readonly #browsers: Browsers
  readonly #openApi = JSON.stringify(adminOpenApi())
  #isRetired = false
  /** How many requests are under way whose route allows large bodies. */
  #largeBodies = 0

  constructor(options: AdminServerOptions) {
    this.#options = options
    this.#browsers = new Browsers(options.browsers)
    const { prefix } = this.#browsers
    const { requestTimeoutMs } = options
    this.#server = createFastify({ requestTimeoutMs, prefix }, (reply) => void this.#send(reply, unknownPath))
    this.#clients = new Clients(this.#server.server, options)
    this.#server.removeContentTypeParser('text/plain')
    this.#parseJson()
    // The token is checked before the body is read.
    this.#server.addHook('onRequest', (request, reply, done) => {
      if (!this.#clients.isAdmitted(request.raw, reply.raw)) return void reply.hijack()
      const refusal = this.#refusal(request, reply) ?? this.#largeBody(request, reply)
      if (refusal === undefined) done()
      else void this.#send(reply, refusal)
    })
    for (const route of adminRoutes) this.#serve(route)
    this.#server.get('/openapi.json', (request, reply) =>
      this.#clients.hasRoom(request.raw, reply.raw)
        ? reply.type('application/json').send(this.#openApi)
        : this.#send(reply, unread),
    )
    const hasRoom = (request: FastifyRequest, reply: FastifyReply): boolean =>
      this.#clients.hasRoom(request.raw, reply.raw)
    const { provider, onFault } = options
    addSignIn(this.#server, { browsers: this.#browsers, provider, onFault }, hasRoom)
    addConsole(this.#server, { ...options.console, prefix }, hasRoom)
    this.#server.setNotFoundHandler((_request, reply) => this.#send(reply, unknownPath))
    this.#server.setErrorHandler((error: FastifyError, request, reply) =>
      this.#send(reply, this.#answerOf(error, request.routeOptions.config.admin?.maxBodyBytes)),
    )
  }

  async listen({ host, port }: { host: string; port: number }): Promise<number> {
    await this.#server.listen({ host, port })
    const address = this.#server.server.address()
    return typeof address === 'object' && address !== null ? address.port : port
  }

  async stop(timeoutMs: number): Promise<void> {
    this.#isRetired = true
    const timer = setTimeout(() => this.#server.server.closeAllConnections(), timeoutMs)
    await this.#server.close()
    clearTimeout(timer)
  }

  /**
   * Sets the parser of JSON bodies. Some clients name JSON as the type of every request. So a body may be
   * empty if its route needs none.
   */
  #parseJson(): void {
    const parse = this.#server.getDefaultJsonParser('error', 'error')
    const types = ['application/json', 'application/merge-patch+json']
    this.#server.addContentTypeParser(types, { parseAs: 'string' }, (request, body, done) => {
      const isNeeded = request.routeOptions.config.admin?.body !== undefined
      if (body.length === 0 && !isNeeded) {
        done(null)
        return
      }
      const text = body.toString()
      void parse(request, text, (error: Error | null, value?: unknown) => {
        const refused = error ?? (isTooDeep(value) ? new TooDeepError() : null)
        done(refused, refused === null ? withOwnKeys(text, value) : undefined)
      })
    })
  }

  #serve(route: AdminRoute): void {
    this.#server.route<{ Params: Record<string, string>; Querystring: Record<string, string> }>({
      method: route.method,
      url: route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      config: { admin: route },
      ...(route.maxBodyBytes !== undefined && { bodyLimit: route.maxBodyBytes }),
      schema: schemaOf(route),
      handler: async (request, reply) => this.#send(reply, await this.#answer(route, request)),
    })
  }

  async #answer(
    route: AdminRoute,
    request: FastifyRequest<{ Params: Record<string, string>; Querystring: Record<string, string> }>,
  ): Promise<AdminAnswer> {
    if (usesCatalog(route)) await this.#options.ownChanges?.()
    // The token may have ended while the body came.
    const token = route.isOpen === true ? nobody : this.#tokenOf(request)
    if (token === undefined || !mayUse(token, route)) return noToken
    const { params, query, body, headers } = request
    const { destination = '' } = params
    if (
      isScoped(token.scope) &&
      route.scope === 'destination' &&
      !this.#options.sees(token.scope, destination)
    )
      return missing('destination', destination)
    const conditions = { ifMatch: headers['if-match'], ifNoneMatch: headers['if-none-match'] }
    const isInForce = (): boolean => {
      if (route.isOpen === true) return true
      const now = this.#tokenOf(request)
      if (now === undefined || !mayUse(now, route)) return false
      // A stream goes on for hours, while what was asked once is answered at once.
      return route.isStream !== true || seesTheSame(now, token)
    }
    const key = route.headers?.[idempotencyHeader] === undefined ? undefined : headers['idempotency-key']
    if (key !== undefined && !isIdempotencyKey(key)) return badKey
    const caller = this.#browsers.callerOf(approachOf(request))
    const lastEventId = route.isStream === true ? String(headers['last-event-id'] ?? '') : undefined
    const given = {
      params,
      query,
      body,
      conditions,
      idempotencyKey: key,
      token,
      caller,
      isInForce,
      lastEventId,
    }
    const answer = await this.#options.calls[route.call](given)
    // What was only read isn't shown any more. What was done is told.
    return route.right === 'read' && route.status !== 204 && !isInForce() ? noToken : answer
  }

  /**
   * Finds the token of a request, or that of its session, if it is in force at this moment. The cookie of a
   * session doesn't count in a request that a page of another site has sent.
   */
  #tokenOf(request: FastifyRequest): Token | undefined {
    const { authorization } = request.headers
    if (authorization !== undefined) {
      const given = /^Bearer ([\x21-\x7e]{1,200})$/i.exec(authorization)?.[1]
      return given === undefined ? undefined : this.#options.findToken(given)
    }
    const approach = approachOf(request)
    const { secret } = this.#browsers.callerOf(approach)
    return secret === undefined || this.#browsers.siteOf(approach) === 'foreign'
      ? undefined
      : this.#options.findSession(secret)
  }

  /**
   * Returns true if a page of another site may have sent a request that changes something. With a token in
   * its header, no such page has, because it doesn't know one.
   */
  #isFromOtherSite(request: FastifyRequest, { method, isOpen }: AdminRoute): boolean {
    if (request.headers.authorization !== undefined || method === 'GET') return false
    const approach = approachOf(request)
    const site = this.#browsers.siteOf(approach)
    if (isOpen === true || this.#browsers.callerOf(approach).secret === undefined) return site === 'foreign'
    return site !== 'own'
  }

  #refusal(request: FastifyRequest, reply: FastifyReply): AdminAnswer | undefined {
    const route = request.routeOptions.config.admin
    if (route === undefined) return undefined
    if (this.#isFromOtherSite(request, route)) return otherSite
    if (route.isOpen === true) return this.#clients.hasRoom(request.raw, reply.raw) ? undefined : unread
    const token = this.#tokenOf(request)
    if (token === undefined) return noToken
    this.#holders.set(request, token)
    if (route.showsContent === true && !token.seesContent) return problem('not_allowed', noContent)
    if (!mayUse(token, route)) {
      const detail =
        token.grants === undefined
          ? `This needs the right ${route.right}, and the token has ${token.right}: take another token.`
          : 'The link by which you signed in does not give this right: ask whoever gave it to you.'
      return problem('not_allowed', detail)
    }
    if (isScoped(token.scope) && !isOpenToScopes(route)) return problem('not_allowed', notScoped)
    return this.#clients.hasRoom(request.raw, reply.raw, shareOf(token)) ? undefined : unread
  }

  /** Takes a place for a large body, which is free again when the request is answered or cut off. */
  #largeBody(request: FastifyRequest, reply: FastifyReply): AdminAnswer | undefined {
    if (request.routeOptions.config.admin?.maxBodyBytes === undefined) return undefined
    if (this.#largeBodies >= mostLargeBodies) return tooManyLarge
    this.#largeBodies += 1
    reply.raw.once('close', () => (this.#largeBodies -= 1))
    return undefined
  }

  #send(reply: FastifyReply, answer: AdminAnswer): FastifyReply {
    const { request } = reply
    const text = printable(JSON.stringify(answer.body))
    if (text.length > maxAnswerCharacters) return this.#send(reply, tooMuch)
    const { status, isProblem, headers = {} } = answer
    const call = request.routeOptions.config.admin?.call ?? 'other'
    this.#options.onAnswered(call, status, this.#holders.get(request)?.name ?? '')
    if (this.#isRetired) reply.header('connection', 'close')
    if (answer.stream !== undefined) {
      reply.hijack()
      reply.raw.writeHead(status, streamHeaders)
      answer.stream(reply.raw)
      return reply
    }
    return reply
      .code(status)
      .headers({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff', ...headers })
      .type(isProblem ? 'application/problem+json' : 'application/json')
      .send(status === 204 ? undefined : text)
  }

  #answerOf(error: FastifyError, most = maxBodyBytes): AdminAnswer {
    if (error instanceof TooDeepError) return problem('bad_request', tooDeep)
    if (error.validation !== undefined) return problem('bad_request', `${faultOf(error)}: see /openapi.json.`)
    switch (error.statusCode) {
      case 413:
        return problem('too_large', `Send a body of at most ${most / 1024} KiB.`)
      case 415:
        return problem('unknown_type', 'Send JSON, with Content-Type: application/json.')
      case 400:
        return problem('bad_request', 'Send a body that is one JSON value, as /openapi.json has it.')
      default:
        this.#options.onFault(error)
        return problem('internal', 'A fault of Sluice: the log of sluice admin has it, please report it.')
    }
  }
}

/**
 * Answers a request that can't be parsed or that didn't come in time, and closes its connection. Fastify's
 * own answers to such requests are no problem details. Node calls this function again for each further piece
 * that arrives on the connection.
 */
function answerClientError({ code }: { readonly code: string }, socket: Socket): void {
  if (code === 'ECONNRESET' || !socket.writable) return
  const { status, body } = clientErrors[code] ?? malformed
  const text = JSON.stringify(body)
  const head = `HTTP/1.1 ${status} Refused\r\nContent-Type: application/problem+json; charset=utf-8\r\n`
  socket.end(`${head}Content-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`)
  // If the connection were closed at once, a client that is still sending would lose the answer.
  setTimeout(() => socket.destroy(), closeAfterMs).unref()
}

/** The body of a request has too many levels for the functions that go through it by recursion. */
class TooDeepError extends Error {}

function isTooDeep(body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return false
  const measured = measureStructure(body, { maxDepth: maxBodyDepth, maxKeys: Infinity })
  return !measured.ok && measured.fault === 'nested_too_deep'
}

/** Returns which field violates the schema. Ajv's own message doesn't name an unknown field. */
function faultOf({ message, validation, validationContext = 'body' }: FastifyError): string {
  const [first] = validation ?? []
  const unknown = first?.params['additionalProperty']
  return typeof unknown === 'string'
    ? `${validationContext}${first?.instancePath ?? ''} has the unknown field ${JSON.stringify(unknown)}`
    : message
}

function approachOf({ method, headers, raw: { socket } }: FastifyRequest): Approach {
  return { method, headers, socket }
}

/** Proxies neither store nor gather events. */
const streamHeaders = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'x-accel-buffering': 'no',
}

/** Who uses an open route: nobody who may see anything. */
const nobody: Token = {
  name: '',
  right: 'read',
  seesContent: false,
  digest: Buffer.alloc(0),
  scope: { destinations: new Set() },
  endsAtMs: undefined,
  family: '',
}

function isIdempotencyKey(key: string | readonly string[]): key is string {
  return typeof key === 'string' && /^[\x21-\x7e]{1,255}$/.test(key)
}

function schemaOf({ params, query, body }: AdminRoute): object {
  return {
    ...(params !== undefined && { params: objectOf(params, true) }),
    querystring: objectOf(query ?? {}, false),
    ...(body !== undefined && { body: body.schema }),
  }
}

function objectOf(given: NonNullable<AdminRoute['query']>, isRequired: boolean): object {
  return {
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(Object.entries(given).map(([name, { schema }]) => [name, schema])),
    required: isRequired ? Object.keys(given) : [],
  }
}

const noContent =
  'This shows what messages contain, which the token may not see: take a token that was made with content.'
const notScoped = 'This concerns the whole installation, and the token has a scope: take a token without one.'

const unread = problem(
  'busy',
  'Answers to this token, or all answers, that nobody has read yet take too much memory: read them, and try again.',
)
const tooManyLarge = problem('busy', 'Too many large bodies are under way: try again in a few seconds.')
const badKey = problem(
  'bad_request',
  'Send an Idempotency-Key of 1 to 255 visible ASCII characters: see /openapi.json.',
)
const tooMuch = problem('answer_too_large', 'Ask for less: less time, fewer records, or one destination.')
const unknownPath = problem(
  'not_found',
  'There is nothing at this path, or not by this method: see /openapi.json.',
)
const clientErrors: Readonly<Record<string, AdminAnswer>> = {
  ERR_HTTP_REQUEST_TIMEOUT: problem(
    'too_slow',
    'The request did not come as a whole in time: send it again.',
  ),
  HPE_HEADER_OVERFLOW: problem('head_too_large', 'Send a shorter URL, and fewer or shorter headers.'),
}
const malformed = problem('bad_request', 'Send a request that is HTTP/1.1, with a Host header.')
