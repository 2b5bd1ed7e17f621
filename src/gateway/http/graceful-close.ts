import type { Socket } from 'node:net'

/**
 * A client may go on sending for this time in milliseconds after it has got its answer. In this time, it may
 * send at most `graceBytes`.
 */
const graceMs = 5_000
const graceBytes = 32 * 1_024 * 1_024

/**
 * Ends a connection whose client may still be sending, so that the client can read the answer. Sends FIN, and
 * for a while reads and discards all bytes that arrive. Without this, the system would answer further bytes
 * with a reset, and the client could lose the answer (RFC 9112, section 9.6).
 */
export function closeGracefully(socket: Socket): void {
  let left = graceBytes
  // The bytes that arrive now belong to no request, so the listeners of Node's HTTP server are removed.
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
