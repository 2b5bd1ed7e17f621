import type { Socket } from 'node:net'

/**
 * The time for which a client that has its answer may go on sending, in milliseconds. `graceBytes` limits the
 * bytes that it may send.
 */
const graceMs = 5_000
const graceBytes = 32 * 1_024 * 1_024

/**
 * Ends a connection while its client may still be sending, so that the client can read the answer. Sends FIN.
 * After that, what still arrives is read and discarded for a while. If the connection were closed at once,
 * the remaining bytes would be answered with a reset, and the client could lose the answer (RFC 9112, 9.6).
 */
export function closeGracefully(socket: Socket): void {
  let left = graceBytes
  // Removes HTTP's own listeners: bytes that arrive now belong to no request.
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

/** Closes gracefully once the current answer, the last one on this connection, has been written. */
export function closeGracefullyAfterAnswer(socket: Socket): void {
  // Node calls `destroySoon` once the answer has been written. Node's own `destroySoon` would drop the
  // connection.
  socket.destroySoon = () => closeGracefully(socket)
}
