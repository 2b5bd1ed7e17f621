import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** A broker that accepts connections and then says nothing, as a process does that hangs. */
export type SilentBroker = {
  /** Its address, as `host:port`. */
  readonly address: string
  /** The number of connections that it has accepted. */
  readonly accepted: number
  stop(): void
}

/**
 * Starts a silent broker. With `upstream`, the broker at this address answers the first request of each
 * connection. So the connection falls silent when the client logs in.
 */
export async function startSilentBroker({ upstream }: { upstream?: string } = {}): Promise<SilentBroker> {
  const sockets = new Set<Socket>()
  let accepted = 0
  const keep = (socket: Socket): Socket => {
    sockets.add(socket)
    return socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
  }
  const server = createServer((client) => {
    accepted++
    keep(client).resume()
    if (upstream === undefined) return
    const [host, port] = upstream.split(':')
    const broker = keep(connect(Number(port), host ?? ''))
    broker.pipe(client)
    // A client waits for the answer to its first request, so the first chunk has only this request.
    client.once('data', (chunk: Buffer) => broker.write(chunk))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const place = server.address()
  if (place === null || typeof place === 'string') throw new Error('the server has no port')
  return {
    address: `127.0.0.1:${place.port}`,
    get accepted() {
      return accepted
    },
    stop() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
