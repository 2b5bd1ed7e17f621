import type { Socket } from 'node:net'

const endOfHead = Buffer.from('\r\n\r\n')

/** Calls `onRequest` with each request of a connection, as soon as the request is complete. */
export function readRequests(socket: Socket, onRequest: (head: string, body: Buffer) => void): void {
  let pending: Buffer | undefined
  socket.on('data', (chunk: Buffer) => {
    pending = takeRequests(pending === undefined ? chunk : Buffer.concat([pending, chunk]), onRequest)
  })
  // A sender closes its connections when it is stopped, or when a request takes too long.
  socket.on('error', () => socket.destroy())
}

/**
 * Calls `onRequest` with each complete HTTP/1.1 request at the front of `bytes`, and returns the rest. `head`
 * ends after its last line. Bodies must have a `Content-Length`. node:http isn't used here, because it would
 * cost more than the measured sender.
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

/** The answer of a receiver to a request that it accepts. */
export const accepted = Buffer.from(
  'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok',
)
