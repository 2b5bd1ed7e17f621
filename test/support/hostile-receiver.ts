import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Identity } from './certificates.ts'
import { portOf } from './receiver.ts'

/** Servers that answer as no server should. Real ones, on a free port of 127.0.0.1, below the level of HTTP. */

/** Which request it is: all counted from 1. */
export type Place = {
  /** Of all requests to this server. */
  nth: number
  /** Of its connection. */
  nthOfConnection: number
  connection: number
}

/** What a server does. Where it says nothing, it takes every request and answers it well. */
export type Behaviour = {
  /** Takes over a connection as it was accepted, before TLS. Gives true if it did. */
  accepts?: (socket: Socket, connection: number) => boolean
  /** Sees a connection, inside of TLS, before anything was read from it; it is served all the same. */
  greets?: (socket: Socket, connection: number) => void
  /** Gets each whole request. */
  answers?: (socket: Socket, place: Place) => void
}

export type HostileReceiver = {
  origin: string
  port: number
  /** TCP connections that were accepted so far. */
  readonly connections: number
  /** Of those, the ones that are still there. */
  readonly open: number
  /** The bodies of all whole requests, in order. */
  readonly requests: readonly string[]
  /** Bytes that went out, to clients and into the kernel's buffers; with TLS in its records. */
  readonly bytesSent: number
  stop(): Promise<void>
}

/** The status of a good answer, which none of the bad ones has. */
export const goodStatus = 299

export function answerWell(socket: Socket): void {
  socket.write(`HTTP/1.1 ${goodStatus} Good\r\ncontent-length: 4\r\n\r\ngood`)
}

/** Does what `hostile` says with the first request, and answers all others well. */
export function atFirst(hostile: (socket: Socket) => void): Behaviour {
  return { answers: (socket, { nth }) => (nth === 1 ? hostile(socket) : answerWell(socket)) }
}

/** Sends `text` (a string in Latin-1), and then maybe ends. */
export function says(text: string | Buffer, ending: 'stays' | 'closes' | 'resets' = 'stays') {
  return (socket: Socket): void => {
    // A reset overtakes what hasn't left yet.
    socket.write(typeof text === 'string' ? Buffer.from(text, 'latin1') : text, () => {
      if (ending === 'closes') socket.end()
      if (ending === 'resets') socket.resetAndDestroy()
    })
  }
}

/** Sends `parts` one after the other, each `everyMs` after the one before, as long as the connection is there. */
export function drips(parts: Iterable<string>, everyMs: number) {
  return (socket: Socket): void => {
    const rest = parts[Symbol.iterator]()
    const timer = setInterval(() => {
      const { done, value } = rest.next()
      if (done === true || socket.destroyed) clearInterval(timer)
      else socket.write(Buffer.from(value, 'latin1'))
    }, everyMs)
    socket.once('close', () => clearInterval(timer))
  }
}

/** `text` for ever. */
export function* endlessly(text: string): Generator<string> {
  for (;;) yield text
}

/** Sends `head`, and then `text` again and again as fast as it's taken. */
export function floods(head: string, text: string) {
  const block = Buffer.from(text.repeat(Math.ceil(2 ** 17 / text.length)), 'latin1')
  return (socket: Socket): void => {
    const more = (): void => {
      if (!socket.destroyed) socket.write(block, more)
    }
    socket.write(Buffer.from(head, 'latin1'), more)
  }
}

export async function startHostileReceiver(
  { accepts, greets, answers = answerWell }: Behaviour,
  { identity }: { identity?: Identity } = {},
): Promise<HostileReceiver> {
  const sockets: Socket[] = []
  const requests: string[] = []
  let served = 0

  function serve(socket: Socket): void {
    const connection = ++served
    let received = Buffer.alloc(0)
    let nthOfConnection = 0
    socket.on('error', ignore)
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      for (let request = firstOf(received); request !== undefined; request = firstOf(received)) {
        received = received.subarray(request.bytes)
        nthOfConnection++
        const nth = requests.push(request.body)
        answers(socket, { nth, nthOfConnection, connection })
      }
    })
    greets?.(socket, connection)
  }

  const secure = identity === undefined ? undefined : createTlsServer(identity, serve)
  secure?.on('tlsClientError', ignore)
  const front = createServer((socket) => {
    const connection = sockets.push(socket)
    socket.on('error', ignore)
    if (accepts?.(socket, connection) === true) return
    if (secure === undefined) serve(socket)
    else secure.emit('connection', socket)
  })
  await new Promise<void>((resolve, reject) => {
    front.once('error', reject)
    front.listen(0, '127.0.0.1', resolve)
  })
  return {
    origin: `${secure === undefined ? 'http' : 'https'}://127.0.0.1:${portOf(front)}`,
    port: portOf(front),
    requests,
    get connections() {
      return sockets.length
    },
    get open() {
      return sockets.filter((socket) => !socket.destroyed).length
    },
    get bytesSent() {
      return sockets.reduce((sum, socket) => sum + socket.bytesWritten - socket.writableLength, 0)
    },
    async stop() {
      const closed = new Promise((resolve) => front.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** Half of what these servers do ends in a broken connection. */
function ignore(): void {}

/** The whole request that comes first. */
export function firstOf(received: Buffer): { bytes: number; body: string } | undefined {
  const headEnd = received.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const head = received.subarray(0, headEnd).toString('latin1')
  const bodyAt = headEnd + 4
  const bytes = bodyAt + Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
  return received.length < bytes ? undefined : { bytes, body: received.subarray(bodyAt, bytes).toString() }
}
