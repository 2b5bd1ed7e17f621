import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import type { Identity } from './certificates.ts'
import { portOf } from './receiver.ts'

/**
 * A server that answers 401 when the first bytes of a request arrive, and then closes the connection with the
 * rest of the request unread. axum 0.8 does this if a handler doesn't read the body: strace shows its answer,
 * and then `shutdown(SHUT_WR)` and `close`, while the client still writes. The server runs in a worker
 * thread, so that this can happen here too.
 */
export type EarlyReceiver = { origin: string; stop(): Promise<void> }

type Settings = { thread: 'early-receiver'; identity: Identity | undefined }

/** Starts the server, which uses TLS if `identity` is given. */
export async function startEarlyReceiver(identity?: Identity): Promise<EarlyReceiver> {
  const data: Settings = { thread: 'early-receiver', identity }
  const thread = new Worker(new URL(import.meta.url), { workerData: data })
  const [port]: unknown[] = await once(thread, 'message')
  return {
    origin: `${identity === undefined ? 'http' : 'https'}://127.0.0.1:${String(port)}`,
    async stop() {
      await thread.terminate()
    },
  }
}

function serve(socket: Socket): void {
  socket.on('error', () => {})
  socket.once('data', () => {
    socket.pause()
    socket.end('HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno', () =>
      socket.destroy(),
    )
  })
}

function listen({ identity }: Settings): void {
  const server = identity === undefined ? createServer(serve) : createTlsServer(identity, serve)
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
  server.listen(0, '127.0.0.1', () => parentPort?.postMessage(portOf(server)))
}

if (!isMainThread && isSettings(workerData)) listen(workerData)

/** Returns true if this thread is one of this file's. The thread of a test may be a worker thread, too. */
function isSettings(data: unknown): data is Settings {
  return typeof data === 'object' && data !== null && 'thread' in data && data.thread === 'early-receiver'
}
