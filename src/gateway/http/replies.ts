import type { FastifyReply } from 'fastify'
import { type Answer, answerHeaders, problem } from '../calls/answer.ts'
import { originHeaders } from './browser.ts'
import type { GatewayDrain } from './gateway-drain.ts'
import type { GatewayObserver } from '../calls/gateway-events.ts'
import type { RequestTrace } from '../calls/request-tracing.ts'

export const notFound = problem(
  'not_found',
  'There is nothing here. POST to /v1/batch and its neighbours; GET /docs tells more.',
)
export const internalError = problem('internal_error', 'Something is wrong with the gateway. Send it again.')

/** Sends the gateway's answers. Once the server is retired, the connection is closed after each answer. */
export class Replies {
  readonly #observer: GatewayObserver
  readonly #drain: Pick<GatewayDrain, 'isRetired'>

  constructor(observer: GatewayObserver, drain: Pick<GatewayDrain, 'isRetired'>) {
    this.#observer = observer
    this.#drain = drain
  }

  send(reply: FastifyReply, { status, body, retryAfterS }: Answer): FastifyReply {
    const { origin } = reply.request.headers
    reply.code(status).headers(answerHeaders)
    if (origin !== undefined) reply.headers(originHeaders(origin))
    if (retryAfterS !== undefined) reply.header('retry-after', String(retryAfterS))
    this.endConnection(reply)
    return reply.send(body)
  }

  sendNotFound(reply: FastifyReply): FastifyReply {
    return this.sendToNoCall(reply, notFound)
  }

  /** Answers a request that belongs to no call of the API, and counts the answer. */
  sendToNoCall(reply: FastifyReply, answer: Answer): FastifyReply {
    this.#observer.answered('other', answer.status, 0, answer.code)
    return this.send(reply, answer)
  }

  /** Makes an answer the last one on its connection if the server is retired. */
  endConnection(reply: FastifyReply): void {
    if (this.#drain.isRetired) reply.header('connection', 'close')
  }
}

/** Calls `work`, which answers a request. Then ends the request's trace with the status of the answer. */
export async function traced(
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
