import type { Socket } from 'node:net'

/** How long, and how much, a client that has its answer may go on sending. */
const graceMs = 5_000
const graceBytes = 32 * 1_024 * 1_024

/**
 * Ends a connection while its client may still be sending, so that it can read the answer that was written to
 * it: says that no more will come, and reads on for a while, throwing away what comes. To close at once would
 * answer what is still on its way with a reset, by which the client loses the answer (RFC 9112, 9.6).
 */
export function closeGracefully(socket: Socket): void {
  let left = graceBytes
  // HTTP's own: what comes now is no part of a request any more.
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
 * Closes gracefully as soon as the answer that is being given, the last one on this connection, has been
 * written.
 */
export function closeGracefullyAfterAnswer(socket: Socket): void {
  // It is what Node calls then, and would drop the connection.
  socket.destroySoon = () => closeGracefully(socket)
}
