import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Identity } from './certificates.ts'
import { portOf } from './receiver.ts'

/**
 * Servers that answer as no server should. They are real servers on a free port of 127.0.0.1, and they write
 * bytes instead of using an HTTP library.
 */

/** The position of a request. All numbers count from 1. */
export type Place = {
  /** The position among all requests to this server. */
  nth: number
  /** The position among the requests of its connection. */
  nthOfConnection: number
  connection: number
}

/**
 * The behaviour of a server. Without any of these functions, the server accepts every connection and answers
 * every request well.
 */
export type Behaviour = {
  /**
   * Takes over a connection that was just accepted, before TLS. Returns true if it has taken the connection
   * over.
   */
  accepts?: (socket: Socket, connection: number) => boolean
  /**
   * Is called with each connection, inside of TLS, before anything is read from it. The server then serves
   * the connection as usual.
   */
  greets?: (socket: Socket, connection: number) => void
  /** Answers a request that has arrived in full. */
  answers?: (socket: Socket, place: Place) => void
}

/** Acts on a connection as no server should. It may, for example, write bytes that aren't HTTP. */
export type Hostile = (socket: Socket) => void

export type HostileReceiver = {
  origin: string
  port: number
  /** The number of TCP connections that were accepted so far. */
  readonly connections: number
  /** The number of these connections that are still open. */
  readonly open: number
  /** The bodies of all whole requests, in order. */
  readonly requests: readonly string[]
  /**
   * The number of bytes that went out, to clients and into the kernel's buffers. With TLS, it counts the
   * bytes of TLS records.
   */
  readonly bytesSent: number
  stop(): Promise<void>
}

/** The status of a good answer. No bad answer has this status. */
export const goodStatus = 299

export function answerWell(socket: Socket): void {
  socket.write(`HTTP/1.1 ${goodStatus} Good\r\ncontent-length: 4\r\n\r\ngood`)
}

/** Returns a behaviour that uses `hostile` for the first request, and answers all other requests well. */
export function atFirst(hostile: Hostile): Behaviour {
  return { answers: (socket, { nth }) => (nth === 1 ? hostile(socket) : answerWell(socket)) }
}

/** Returns a behaviour in which `hostile` gets the first connection, in place of the normal server. */
export function instead(hostile: Hostile): Behaviour {
  return {
    accepts(socket, connection) {
      if (connection === 1) hostile(socket)
      return connection === 1
    },
  }
}

/** Returns a function that calls `hostile` when the first bytes of the client arrive. */
export function onceHeard(hostile: Hostile): Hostile {
  return (socket) => socket.once('data', () => hostile(socket))
}

/**
 * Returns a behaviour in which the first connection gets the answer of `hostile` before the server has read
 * the request.
 */
export function early(hostile: Hostile): Behaviour {
  return {
    greets: (socket, connection) => connection === 1 && hostile(socket),
    answers: (socket, { nth }) =>
      nth > 1 && says(`HTTP/1.1 ${goodStatus} Good\r\ncontent-length: 0\r\n\r\n`)(socket),
  }
}

/**
 * Returns a behaviour that acts when the first request is complete. It writes `answer` inside of TLS, and
 * `hostile` gets the socket below TLS.
 */
export function belowTls(hostile: Hostile, answer = ''): Behaviour {
  let below: Socket | undefined
  return {
    accepts(socket, connection) {
      if (connection === 1) below = socket
      return false
    },
    ...atFirst((socket) => {
      socket.write(answer)
      if (below !== undefined) hostile(below)
    }),
  }
}

/**
 * Returns a function that sends `text` on a connection. A string is sent as Latin-1. After that, the
 * connection stays open, is closed, or is reset.
 */
export function says(text: string | Buffer, ending: 'stays' | 'closes' | 'resets' = 'stays') {
  return (socket: Socket): void => {
    // A reset discards bytes that haven't left yet. So the reset waits for the end of the write.
    socket.write(typeof text === 'string' ? Buffer.from(text, 'latin1') : text, () => {
      if (ending === 'closes') socket.end()
      if (ending === 'resets') socket.resetAndDestroy()
    })
  }
}

/**
 * Returns a function that sends one of `parts` on a connection every `everyMs`, until the connection closes.
 */
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

/** Yields `text` forever. */
export function* endlessly(text: string): Generator<string> {
  for (;;) yield text
}

/** Yields `first`, and then `rest` again and again. */
export function* dripping(first: string, rest: string): Generator<string> {
  yield first
  yield* endlessly(rest)
}

/** Returns a function that sends `head`, and then `text` again and again, as fast as the client takes it. */
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

/**
 * Ignores an error of a connection. About half of the behaviours break connections, so errors are expected.
 */
function ignore(): void {}

/** Returns the first request in `received`. Returns `undefined` if it has not arrived in full. */
export function firstOf(received: Buffer): { bytes: number; body: string } | undefined {
  const headEnd = received.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const head = received.subarray(0, headEnd).toString('latin1')
  const bodyAt = headEnd + 4
  const bytes = bodyAt + Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
  return received.length < bytes ? undefined : { bytes, body: received.subarray(bodyAt, bytes).toString() }
}
