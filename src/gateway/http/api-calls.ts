import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Answer, success } from '../calls/answer.ts'
import { apiRoutes, importPath } from './api-routes.ts'
import type { CallName } from '../calls/gateway-events.ts'
import { isTrackingKind } from '../messages/item.ts'
import type { Received, Reception } from './receive.ts'
import { notFound, traced } from './replies.ts'
import type { RequestTrace } from '../calls/request-tracing.ts'
import type { GatewayParts } from './gateway-parts.ts'

/** The type of a request with its body. `Body` is `undefined` if the client announced no body. */
type ReceivedRequest = { Body: Received | undefined }

export function serveCalls(server: FastifyInstance, parts: GatewayParts): void {
  const { observer, tracing, replies } = parts
  for (const { call, paths } of apiRoutes) {
    for (const path of paths) {
      server.post<ReceivedRequest>(path, { config: { call } }, async (request, reply) => {
        const startMs = performance.now()
        const answer =
          tracing === undefined
            ? await handle(parts, { call, path }, request)
            : await traced(tracing.begin('POST', path, request.headers), (trace) =>
                handle(parts, { call, path }, request, trace),
              )
        observer.answered(call, answer.status, performance.now() - startMs, answer.code)
        return replies.send(reply, answer)
      })
    }
  }
}

/**
 * Decides from the head of a request how its body is received. If the gateway will refuse or discard the
 * body, the body isn't kept while it arrives.
 */
export function receptionOf(
  { tracking, serverCalls, origin }: GatewayParts,
  request: FastifyRequest,
): Reception {
  const { routeOptions, headers } = request
  const { call = 'other' } = routeOptions.config
  switch (call) {
    case 'deletions':
    case 'audience_changes':
      return serverCalls.refusal(headers.authorization) ?? 'keep'
    default:
      return isTrackingKind(call) || call === 'batch'
        ? (tracking.refusal(headers.authorization, {
            bytes: Number(headers['content-length'] ?? 0),
            client: origin.clientOf(request),
          }) ?? 'keep')
        : 'discard'
  }
}

async function handle(
  { tracking, serverCalls, origin }: GatewayParts,
  { call, path }: { readonly call: CallName; readonly path: string },
  request: FastifyRequest<ReceivedRequest>,
  trace?: RequestTrace,
): Promise<Answer> {
  const sent = request.body ?? Buffer.alloc(0)
  // If `sent` is an answer, the request was refused while its body was received. The answer isn't thrown as
  // an error, because Fastify would then close the connection.
  if (!Buffer.isBuffer(sent)) return sent
  // Frees the memory of the body while the call waits for its answer.
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
        ? tracking.handle(call, sent, authorization, origin.clientOf(request, path === importPath), trace)
        : notFound
  }
}
