import { connect } from 'node:net'
import { text } from 'node:stream/consumers'

/** Sends bytes to a server of this machine, and returns what it answers until it closes the connection. */
export async function exchange(port: number, sent: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.end(sent)
  return text(socket)
}
