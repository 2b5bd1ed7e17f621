import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { answerHeaders, type Answer, problem } from './answer.ts'
import { lingerAndClose } from './linger.ts'

/** Answers what can't be read as a request, or didn't come in time, and ends its connection. */
export function answerClientError({ code }: { readonly code?: string }, socket: Socket): void {
  // The client has gone, or has its answer already.
  if (code === 'ECONNRESET' || !socket.writable) return
  socket.write(textOf(answerTo(code)))
  lingerAndClose(socket)
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
