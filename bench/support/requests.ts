import type { Socket } from 'node:net'

const endOfHead = Buffer.from('\r\n\r\n')

/** Hands over each request that comes on a connection, as soon as it is complete. */
export function readRequests(socket: Socket, onRequest: (head: string, body: Buffer) => void): void {
  let pending: Buffer | undefined
  socket.on('data', (chunk: Buffer) => {
    pending = takeRequests(pending === undefined ? chunk : Buffer.concat([pending, chunk]), onRequest)
  })
  // A sender that is stopped, or that has waited long enough, cuts its connections.
  socket.on('error', () => socket.destroy())
}

/**
 * Takes all complete HTTP/1.1 requests off the front of `bytes`, hands over each, and gives back the rest.
 * `head` ends with its last line; bodies have a `Content-Length`. node:http would cost more than what is measured.
 */
function takeRequests(bytes: Buffer, onRequest: (head: string, body: Buffer) => void): Buffer | undefined {
  let rest = bytes
  while (rest.length > 0) {
    const headEnd = rest.indexOf(endOfHead)
    if (headEnd < 0) return rest
    const bodyStart = headEnd + endOfHead.length
    const head = rest.toString('latin1', 0, headEnd + 2)
    const end = bodyStart + Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
    if (rest.length < end) return rest
    onRequest(head, rest.subarray(bodyStart, end))
    rest = rest.subarray(end)
  }
  return undefined
}

/** What a receiver answers to a request that it takes. */
export const accepted = Buffer.from(
  'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok',
)
