import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { answerHeaders, type Answer, problem } from './answer.ts'
import { closeGracefully } from './graceful-close.ts'

/** The answers that connections wait for. */
export class OpenAnswers {
  readonly #bySocket = new WeakMap<Socket, Set<ServerResponse>>()

  add(socket: Socket, response: ServerResponse): void {
    const open = this.#bySocket.get(socket) ?? new Set()
    this.#bySocket.set(socket, open.add(response))
    response.once('close', () => open.delete(response))
  }

  /** Resolves when all requests that had come as a whole by then are answered. */
  async given(socket: Socket): Promise<void> {
    const open = [...(this.#bySocket.get(socket) ?? [])].filter(({ req }) => req.complete)
    await Promise.all(open.map((response) => new Promise((resolve) => response.once('close', resolve))))
  }
}

/**
 * Answers what can't be read as a request, or didn't come in time, and ends its connection. What came before
 * it on the same connection has its own answer first, which this one would be taken for.
 */
export async function answerClientError(
  { code }: { readonly code?: string },
  socket: Socket,
  answers: OpenAnswers,
): Promise<void> {
  await answers.given(socket)
  // The client has gone, or has its answer already.
  if (code === 'ECONNRESET' || !socket.writable) return
  socket.write(textOf(answerTo(code)))
  closeGracefully(socket)
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

/** As HTTP/1.1 writes it. */
function textOf({ status, body }: Answer): string {
  const headers = { ...answerHeaders, 'content-length': Buffer.byteLength(body), connection: 'close' }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`
}

const tooSlow = problem('request_too_slow', 'The request did not come as a whole in time. Send it again.')
const headTooLarge = problem('head_too_large', 'Send a shorter URL, and fewer or shorter headers.')
const malformed = problem('malformed_request', 'Send a request that is HTTP/1.1.')
