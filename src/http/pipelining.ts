import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The limit on the requests of one connection that haven't been answered yet. */
const mostUnanswered = 16

/** The number of unanswered requests, by connection. */
const unanswered = new WeakMap<Socket, number>()

/**
 * Counts a request that has come, until it is answered. Returns false if its connection has too many requests
 * that haven't been answered, and closes this connection. Don't do anything for such a request.
 *
 * An HTTP client may send requests without waiting for the answers to earlier ones (pipelining). One read of
 * 64 KiB may bring 1,600 requests. Node hands over all of them at once, even if the connection was closed
 * meanwhile, and keeps the answers in memory if the client doesn't read them.
 */
export function isAdmitted({ socket }: IncomingMessage, response: ServerResponse): boolean {
  if (socket.destroyed) return false
  const count = (unanswered.get(socket) ?? 0) + 1
  if (count > mostUnanswered) {
    socket.destroy()
    return false
  }
  unanswered.set(socket, count)
  response.once('close', () => unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1))
  return true
}
