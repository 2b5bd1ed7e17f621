import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/**
 * A port of this machine that forwards all connections to a server. A test can cut this way to the server.
 */
export type BreakableWay = {
  /** The server's URL with the host and port of this way. */
  readonly url: string
  /** Breaks all connections, and accepts no new ones until `mend` is called. */
  cut(): Promise<void>
  mend(): Promise<void>
}

export async function openBreakableWay(url: string): Promise<BreakableWay> {
  const { hostname, port, protocol } = new URL(url)
  const sockets = new Set<Socket>()
  const server = createServer((from) => {
    const to = connect(Number(port), hostname)
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      sockets.add(one)
      one.on('error', () => other.destroy())
      one.on('close', () => sockets.delete(one))
      one.pipe(other)
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('it has no port')
  return {
    url: `${protocol}//127.0.0.1:${address.port}`,
    async cut() {
      if (!server.listening) return
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
    async mend() {
      server.listen(address.port, '127.0.0.1')
      await once(server, 'listening')
    },
  }
}
