import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { http } from '../../http/node-http.ts'
import { answerHeaders, type Answer, problem } from '../calls/answer.ts'
import { closeGracefully } from './graceful-close.ts'

/** The responses that aren't complete yet, by connection. */
export class OpenAnswers {
  readonly #bySocket = new WeakMap<Socket, Set<ServerResponse>>()
  readonly #failed = new WeakSet<Socket>()

  add(socket: Socket, response: ServerResponse): void {
    const open = this.#bySocket.get(socket) ?? new Set()
    this.#bySocket.set(socket, open.add(response))
    response.once('close', () => open.delete(response))
  }

  /**
   * Remembers that a connection has an error. Returns false if the connection already had an error, because
   * Node reports an error again for each further piece that arrives.
   */
  isFirstError(socket: Socket): boolean {
    const isFirst = !this.#failed.has(socket)
    this.#failed.add(socket)
    return isFirst
  }

  /**
   * Resolves once the gateway has answered every request that had arrived in full on the connection when this
   * method was called.
   */
  async given(socket: Socket): Promise<void> {
    const open = [...(this.#bySocket.get(socket) ?? [])].filter(({ req }) => req.complete)
    await Promise.all(open.map((response) => new Promise((resolve) => response.once('close', resolve))))
  }
}

/**
 * Answers a request that can't be parsed or didn't arrive in time, and closes its connection. First waits
 * until all earlier requests on the connection have been answered. Otherwise the client would take this
 * answer for the answer to an earlier request. Calls `onAnswered` with the answer.
 */
export async function answerClientError(
  { code }: { readonly code?: string },
  socket: Socket,
  answers: OpenAnswers,
  onAnswered: (answer: Answer) => void,
): Promise<void> {
  if (!answers.isFirstError(socket)) return
  await answers.given(socket)
  // The client has closed the connection, or the last answer has already ended the connection.
  if (code === 'ECONNRESET' || !socket.writable) return
  const answer = answerTo(code)
  socket.write(textOf(answer))
  closeGracefully(socket)
  onAnswered(answer)
}

function answerTo(code: string | undefined): Answer {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return tooSlow
    case 'HPE_HEADER_OVERFLOW':
      return headTooLarge
    default:
      return malformed
  }
}

/** Formats an answer as the text of an HTTP/1.1 response. */
function textOf({ status, body }: Answer): string {
  const headers = { ...answerHeaders, 'content-length': Buffer.byteLength(body), connection: 'close' }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`
}

const tooSlow = problem('request_too_slow', 'The request did not come as a whole in time. Send it again.')
const headTooLarge = problem('head_too_large', 'Send a shorter URL, and fewer or shorter headers.')
/** The answer to a request that isn't HTTP/1.1. */
export const malformed = problem('malformed_request', 'Send a request that is HTTP/1.1, with a Host header.')
