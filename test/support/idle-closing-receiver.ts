import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import type { Identity } from './certificates.ts'
import { answerWell, firstOf } from './hostile-receiver.ts'
import { portOf } from './receiver.ts'

/**
 * A server that closes a connection if no request comes within `idleMs` after an answer. It runs in a worker
 * thread. In the test's own thread, the server could never close a connection at the same moment as the
 * client sends a request on it.
 */
export type IdleClosingReceiver = {
  origin: string
  /**
   * Returns how often the server has handled the request whose body is the number `id` (from 1). The server
   * counts a request before it answers.
   */
  handled(id: number): number
  /** Returns true if the server has sent an answer to this request. */
  hasAnswered(id: number): boolean
  /**
   * The number of requests that came on a connection after the server had closed it. After a reset, such
   * requests leave no trace, and are not counted.
   */
  readonly tooLate: number
  stop(): Promise<void>
}

type Settings = {
  idleMs: number
  /** How the server ends a connection. `resets` doesn't work with TLS. */
  ending: 'closes' | 'resets'
  /** If given, the server uses TLS. */
  identity?: Identity
  /**
   * Index 0 holds the number of requests that came too late. Index `id` holds how often that request was
   * handled. Both threads share this array.
   */
  counts: Int32Array
  /** Index `id` holds how many answers to that request have been sent. Both threads share this array. */
  answers: Int32Array
}

export async function startIdleClosingReceiver(
  settings: Omit<Settings, 'counts' | 'answers'>,
  { maxRequests }: { maxRequests: number },
): Promise<IdleClosingReceiver> {
  const counts = sharedCounts(maxRequests + 1)
  const answers = sharedCounts(maxRequests + 1)
  const data: Settings = { ...settings, counts, answers }
  const thread = new Worker(new URL(import.meta.url), { workerData: data })
  const [port]: unknown[] = await once(thread, 'message')
  if (typeof port !== 'number') throw new TypeError('the thread has not told its port')
  return {
    origin: `${settings.identity === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    handled: (id) => Atomics.load(counts, id),
    hasAnswered: (id) => Atomics.load(answers, id) > 0,
    get tooLate() {
      return Atomics.load(counts, 0)
    },
    async stop() {
      await thread.terminate()
    },
  }
}

function sharedCounts(length: number): Int32Array {
  return new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT * length))
}

function serve(socket: Socket, { idleMs, ending, counts, answers }: Settings): void {
  let received = Buffer.alloc(0)
  let isClosed = false
  let timer: NodeJS.Timeout | undefined

  function close(): void {
    isClosed = true
    if (ending === 'closes') socket.end()
    else socket.resetAndDestroy()
  }

  socket.on('error', () => {})
  socket.once('close', () => clearTimeout(timer))
  socket.on('data', (chunk: Buffer) => {
    if (isClosed) {
      Atomics.add(counts, 0, 1)
      return
    }
    received = Buffer.concat([received, chunk])
    const request = firstOf(received)
    if (request === undefined) return
    received = received.subarray(request.bytes)
    const id = Number(request.body)
    Atomics.add(counts, id, 1)
    answerWell(socket)
    Atomics.add(answers, id, 1)
    clearTimeout(timer)
    timer = setTimeout(close, idleMs)
  })
}

function listen(settings: Settings): void {
  const { identity } = settings
  const take = (socket: Socket): void => serve(socket, settings)
  const server = identity === undefined ? createServer(take) : createTlsServer(identity, take)
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
  server.listen(0, '127.0.0.1', () => parentPort?.postMessage(portOf(server)))
}

if (!isMainThread && isSettings(workerData)) listen(workerData)

/** Returns true if this thread is one of this file's. The thread of a test may be a worker thread, too. */
function isSettings(data: unknown): data is Settings {
  return typeof data === 'object' && data !== null && 'counts' in data && data.counts instanceof Int32Array
}
