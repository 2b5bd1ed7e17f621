import type { Socket } from 'node:net'

/** So long, and so much, a client may go on sending that has its answer. */
const lingerMs = 5_000
const lingerBytes = 32 * 1_024 * 1_024

/**
 * Ends a connection while its client may still be sending, so that it can read the answer that was written to it: says
 * that no more will come, and reads on for a while, throwing away what comes. To close at once would answer what is
 * still on its way with a reset, by which the client loses the answer (RFC 9112, 9.6).
 */
export function lingerAndClose(socket: Socket): void {
  let left = lingerBytes
  // HTTP's own: what comes now is no part of a request any more.
  socket.removeAllListeners('data')
  socket.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) socket.destroy()
  })
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.once('close', () => clearTimeout(timer))
  socket.end()
  socket.resume()
}

/** The same as soon as the answer that is now given, the last one on this connection, has been written. */
export function lingerAfterAnswer(socket: Socket): void {
  // It is what Node calls then, and would drop the connection.
  socket.destroySoon = () => lingerAndClose(socket)
}
