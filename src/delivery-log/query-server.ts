import { hash, timingSafeEqual } from 'node:crypto'
import { fastify, type FastifyReply } from 'fastify'
import { Type } from 'typebox'
import { isAdmitted } from '../http/pipelining.ts'
import { type Asking, BadCursorError, type LogQuery, QueryTooLongError } from './log-query.ts'
import { logKinds } from './log-record.ts'

const text = Type.Optional(Type.String({ maxLength: 1_024 }))
const filter = Type.Object(
  {
    fromMs: Type.Number({ minimum: 0 }),
    toMs: Type.Number({ minimum: 0 }),
    destination: text,
    source: text,
    hook: text,
    messageId: text,
    user: Type.Optional(Type.String({ pattern: '^[0-9a-f]{12}$' })),
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

export type QueryServerOptions = {
  readonly query: LogQuery
  readonly host: string
  readonly port: number
  /** The bearer token that clients must send. `undefined`: clients need no token. */
  readonly token: string | undefined
}

/**
 * Starts a server that answers the queries of the client in `query-client.ts`. Each query is a POST of JSON
 * to `/v1/log/NAME`.
 */
export async function serveQueries({
  query,
  host,
  port,
  token,
}: QueryServerOptions): Promise<{ port: number; stop(): Promise<void> }> {
  const server = fastify({
    logger: false,
    forceCloseConnections: true,
    bodyLimit: 64 * 1024,
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, useDefaults: false } },
  })
  server.addHook('onRequest', async (request, reply) => {
    if (!isAdmitted(request.raw, reply.raw)) return reply.hijack()
    if (token === undefined || isToken(token, request.headers.authorization)) return
    return reply.code(401).send({ error: 'the bearer token is missing or wrong' })
  })
  server.setErrorHandler<Error & { statusCode?: number }>((error, _request, reply) => {
    if (error instanceof BadCursorError)
      return reply.code(400).send({ error: error.message, isBadCursor: true })
    if (error instanceof QueryTooLongError)
      return reply.code(504).send({ error: error.message, isTooLong: true })
    return reply.code(error.statusCode ?? 500).send({ error: error.message })
  })
  server.post<{ Body: Type.Static<typeof found> }>(
    '/v1/log/find',
    { schema: { body: found } },
    ({ body }, reply) => query.find(body.messageId, asking(reply)),
  )
  server.post<{ Body: Type.Static<typeof searched> }>(
    '/v1/log/search',
    { schema: { body: searched } },
    ({ body }, reply) => query.search(body.filter, body.page, asking(reply)),
  )
  server.post<{ Body: Type.Static<typeof counted> }>(
    '/v1/log/counts',
    { schema: { body: counted } },
    ({ body }, reply) => query.counts(body.filter, asking(reply)),
  )
  server.post<{ Body: Type.Static<typeof counted> }>(
    '/v1/log/percentiles',
    { schema: { body: counted } },
    ({ body }, reply) => query.percentiles(body.filter, asking(reply)),
  )
  server.post('/v1/log/status', () => query.status())
  await server.listen({ host, port })
  const address = server.server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    stop: () => server.close(),
  }
}

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
