import { connect } from 'node:net'

/** The number of requests. If they are small, the server gets all of them in one read. */
const count = 1_000

/**
 * Sends a request a thousand times over one connection, without waiting for an answer. Resolves when the
 * server has closed the connection.
 */
export async function sendPipelined(port: number, request: string): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.on('error', () => undefined)
  socket.resume()
  socket.write(request.repeat(count))
  await closed
}
