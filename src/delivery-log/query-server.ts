import { hash, timingSafeEqual } from 'node:crypto'
import { fastify, type FastifyInstance, type FastifyReply } from 'fastify'
import { Type } from 'typebox'
import { type ClientLimits, Clients } from '../http/clients.ts'
import { forAnotherHost, isForAnotherHost } from '../http/rebound-name.ts'
import { type Asking, BadCursorError, type LogQuery, QueryBusyError, QueryTooLongError } from './log-query.ts'
import { groupings } from './groups.ts'
import { logKinds } from './log-record.ts'

const text = Type.Optional(Type.String({ maxLength: 1_024 }))
const hashed = Type.Optional(Type.String({ pattern: '^[0-9a-f]{12}$' }))
const filter = Type.Object(
  {
    fromMs: Type.Number({ minimum: 0 }),
    toMs: Type.Number({ minimum: 0 }),
    destination: text,
    destinations: Type.Optional(Type.Array(Type.String({ maxLength: 1_024 }), { maxItems: 10_000 })),
    source: text,
    hook: text,
    messageId: text,
    user: hashed,
    value: hashed,
    kinds: Type.Optional(Type.Array(Type.Enum([...logKinds]), { maxItems: logKinds.length })),
    outcome: text,
    reason: text,
    status: Type.Optional(Type.Integer({ minimum: 0, maximum: 999 })),
    job: text,
    onlyFailed: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
)
const page = Type.Object(
  { limit: Type.Integer({ minimum: 1, maximum: 1_000 }), cursor: text },
  { additionalProperties: false },
)
const found = Type.Object({ messageId: Type.String({ maxLength: 1_024 }) })
const searched = Type.Object({ filter, page })
const counted = Type.Object({ filter })
const grouped = Type.Object({
  filter,
  grouping: Type.Object(
    {
      stepMs: Type.Integer({ minimum: 60_000 }),
      by: Type.Enum([...groupings]),
      top: Type.Integer({ minimum: 1, maximum: 10_000 }),
    },
    { additionalProperties: false },
  ),
})

export type QueryServerOptions = {
  readonly query: LogQuery
  readonly host: string
  readonly port: number
  /** The bearer token that clients must send. `undefined`: clients need no token. */
  readonly token: string | undefined
  /** The time that a client may take to send a whole request, in milliseconds. Default: 10 s. */
  readonly requestTimeoutMs?: number
  readonly onClosed?: ClientLimits['onClosed']
}

/**
 * Limit on the queries that are answered at the same time. Each of them keeps the records that it has found.
 */
const queriesAtOnce = 16
const maxHeaderBytes = 16 * 1_024
const lookEveryMs = 1_000

/**
 * Starts a server that answers the queries of the client in `query-client.ts`. Each query is a POST of JSON
 * to `/v1/log/NAME`.
 */
export async function serveQueries(
  options: QueryServerOptions,
): Promise<{ port: number; stop(): Promise<void> }> {
  const { query, host, port } = options
  const server = openServer(options)
  let underWay = 0
  async function answered<T>(reply: FastifyReply, ask: (asking: Asking) => Promise<T>): Promise<T> {
    if (underWay >= queriesAtOnce) throw new QueryBusyError(busy)
    underWay++
    try {
      return await ask(asking(reply))
    } finally {
      underWay--
    }
  }
  server.post<{ Body: Type.Static<typeof found> }>(
    '/v1/log/find',
    { schema: { body: found } },
    ({ body }, reply) => answered(reply, (asked) => query.find(body.messageId, asked)),
  )
  server.post<{ Body: Type.Static<typeof searched> }>(
    '/v1/log/search',
    { schema: { body: searched } },
    ({ body }, reply) => answered(reply, (asked) => query.search(body.filter, body.page, asked)),
  )
  server.post<{ Body: Type.Static<typeof counted> }>(
    '/v1/log/counts',
    { schema: { body: counted } },
    ({ body }, reply) => answered(reply, (asked) => query.counts(body.filter, asked)),
  )
  server.post<{ Body: Type.Static<typeof counted> }>(
    '/v1/log/percentiles',
    { schema: { body: counted } },
    ({ body }, reply) => answered(reply, (asked) => query.percentiles(body.filter, asked)),
  )
  server.post<{ Body: Type.Static<typeof grouped> }>(
    '/v1/log/groups',
    { schema: { body: grouped } },
    ({ body }, reply) => answered(reply, (asked) => query.groups(body.filter, body.grouping, asked)),
  )
  server.post('/v1/log/status', (_request, reply) => answered(reply, () => query.status()))
  await server.listen({ host, port })
  const address = server.server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    stop: () => server.close(),
  }
}

function openServer({
  token,
  requestTimeoutMs = 10_000,
  onClosed = () => undefined,
}: QueryServerOptions): FastifyInstance {
  const server = fastify({
    logger: false,
    forceCloseConnections: true,
    // A list of 10,000 destinations fits.
    bodyLimit: 2 * 1024 * 1024,
    requestTimeout: requestTimeoutMs,
    http: {
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: lookEveryMs,
    },
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false } },
  })
  const clients = new Clients(server.server, { onClosed })
  server.addHook('onRequest', async (request, reply) => {
    if (!clients.isAdmitted(request.raw, reply.raw)) return reply.hijack()
    // Without a token, the server listens on a loopback address.
    if (token === undefined && isForAnotherHost(request.raw))
      return reply.code(403).send({ error: forAnotherHost })
    if (token !== undefined && !isToken(token, request.headers.authorization))
      return reply.code(401).send({ error: 'the bearer token is missing or wrong' })
    if (!clients.hasRoom(request.raw, reply.raw)) throw new QueryBusyError(unread)
  })
  server.setErrorHandler<Error & { statusCode?: number }>((error, _request, reply) => {
    if (error instanceof BadCursorError)
      return reply.code(400).send({ error: error.message, isBadCursor: true })
    if (error instanceof QueryBusyError)
      return reply.code(503).header('retry-after', '2').send({ error: error.message, isBusy: true })
    if (error instanceof QueryTooLongError)
      return reply.code(504).send({ error: error.message, isTooLong: true })
    return reply.code(error.statusCode ?? 500).send({ error: error.message })
  })
  return server
}

const busy = `${queriesAtOnce} queries are under way: try again when one of them is done`
const unread = 'answers that nobody has read yet take too much memory: read them, and try again'

/** Returns options that abort a query when its client has closed the connection. */
function asking(reply: FastifyReply): Asking {
  const gone = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableEnded) gone.abort()
  })
  return { signal: gone.signal }
}

/**
 * Returns true if the `Authorization` header has the token. Compares in constant time, so that the duration
 * reveals nothing about the token.
 */
function isToken(token: string, authorization: string | undefined): boolean {
  const given = hash('sha256', authorization ?? '', 'buffer')
  return timingSafeEqual(given, hash('sha256', `Bearer ${token}`, 'buffer'))
}
