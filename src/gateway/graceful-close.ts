import type { Socket } from 'node:net'

/**
 * The time for which a client may go on sending after it has its answer, in milliseconds. `graceBytes`: the
 * limit on the bytes that the client may send in this time.
 */
const graceMs = 5_000
const graceBytes = 32 * 1_024 * 1_024

/**
 * Ends a connection whose client may still be sending, in such a way that the client can read the answer.
 * Sends FIN, and for a while reads and discards all bytes that arrive. If the connection were closed at once,
 * the system would answer further bytes with a reset, and the client could lose the answer (RFC 9112, 9.6).
 */
export function closeGracefully(socket: Socket): void {
  let left = graceBytes
  // Removes the listeners of Node's HTTP server, because bytes that arrive now belong to no request.
  socket.removeAllListeners('data')
  socket.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) socket.destroy()
  })
  const timer = setTimeout(() => socket.destroy(), graceMs)
  socket.once('close', () => clearTimeout(timer))
  socket.end()
  socket.resume()
}

/**
 * Closes a connection gracefully once its current answer has been written. This answer must be the last one
 * on the connection.
 */
export function closeGracefullyAfterAnswer(socket: Socket): void {
  // Node calls `destroySoon` once the answer has been written. Without this override, `destroySoon` would
  // drop the connection.
  socket.destroySoon = () => closeGracefully(socket)
}
