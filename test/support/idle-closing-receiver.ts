import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import type { Identity } from './certificates.ts'
import { answerWell, firstOf } from './hostile-receiver.ts'
import { portOf } from './receiver.ts'

/**
 * A server that closes a connection when nothing has come for `idleMs` after an answer, in a thread of its own: only
 * then can a request and the close of its connection pass each other on the way.
 */
export type IdleClosingReceiver = {
  origin: string
  /** How often the request whose body is the number `id` (from 1) was answered: counted before the answer goes out. */
  handled(id: number): number
  /** Whether an answer to it has gone out. */
  hasAnswered(id: number): boolean
  /** Requests that came to a connection after it was closed; a reset leaves no sign of them. */
  readonly tooLate: number
  stop(): Promise<void>
}

type Settings = {
  idleMs: number
  /** No reset comes through TLS. */
  ending: 'closes' | 'resets'
  /** Given, it speaks TLS. */
  identity?: Identity
  /** At 0 those that came too late; at each id how often it was answered. Shared by both threads. */
  counts: Int32Array
  /** At each id how many answers to it have gone out. Shared too. */
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

/** Tests may run in a thread as well. */
function isSettings(data: unknown): data is Settings {
  return typeof data === 'object' && data !== null && 'counts' in data && data.counts instanceof Int32Array
}
