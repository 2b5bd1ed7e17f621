import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, createServer as createTcpServer, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { portOf } from '../support/receiver.ts'
import { until } from '../support/until.ts'

/** A request of a client, and the gateway's answer. */
export type Exchange = {
  method: string
  /** The path, with the query. */
  path: string
  headers: IncomingHttpHeaders
  body: Buffer
  /** The time when the request's head arrived, in epoch milliseconds. */
  startedMs: number
  answer: Answer
}

/** An answer of the gateway. `atMs` is the time when its head had arrived, in epoch milliseconds. */
export type Answer = { status: number; headers: ReadonlyMap<string, string>; body: string; atMs: number }

/**
 * A proxy between a client and the gateway. It forwards every byte and records the requests and the answers.
 */
export type Tap = {
  url: string
  /** Returns the requests of all connections that arrived in full and were answered. */
  exchanges(): Exchange[]
  stop(): Promise<void>
}

/**
 * Starts a tap in front of the gateway's port. A plain HTTP server gets a copy of each byte that clients
 * send. So it finds the requests in these bytes. Its answers reach no client. Clients talk only to the
 * gateway.
 */
export async function startTap(port: number): Promise<Tap> {
  const conversations: Conversation[] = []
  const sockets = new Set<Socket>()
  const bySocket = new Map<unknown, Conversation>()

  const recorder = createServer({ keepAliveTimeout: 0, requestTimeout: 0 }, (request, response) => {
    record(request, response, bySocket.get(request.socket))
  })
  const tap = createTcpServer((client) => {
    const gateway = connect(port, '127.0.0.1')
    const copy = new Copy()
    const conversation = new Conversation()
    conversations.push(conversation)
    bySocket.set(copy, conversation)
    recorder.emit('connection', copy)

    client.on('data', (chunk: Buffer) => copy.push(chunk))
    gateway.on('data', (chunk: Buffer) => conversation.heard(chunk))
    client.pipe(gateway)
    gateway.pipe(client)
    const breakOff = (): void => {
      client.destroy()
      gateway.destroy()
      copy.destroy()
      bySocket.delete(copy)
    }
    for (const socket of [client, gateway]) {
      sockets.add(socket)
      socket.on('error', breakOff)
      socket.once('close', () => {
        sockets.delete(socket)
        breakOff()
      })
    }
  })
  tap.listen(0, '127.0.0.1')
  await until('the tap listens', () => tap.listening)
  return {
    url: `http://127.0.0.1:${portOf(tap)}`,
    exchanges: () => conversations.flatMap((conversation) => conversation.exchanges()),
    async stop() {
      const closed = new Promise((resolve) => tap.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** A connection that repeats a client's bytes. Bytes that are written to it are dropped. */
class Copy extends Duplex {
  constructor() {
    super({ read: () => {}, write: (_chunk, _encoding, done) => done() })
  }

  /** Does nothing. An HTTP server calls this on its sockets. */
  setTimeout(): this {
    return this
  }
}

/** The requests and the answers of one connection. The nth answer belongs to the nth request. */
class Conversation {
  readonly #requests: (Omit<Exchange, 'answer' | 'body'> & { body: Buffer | undefined })[] = []
  readonly #answers: Answer[] = []
  readonly #reader = new AnswerReader((answer) => this.#answers.push(answer))

  heard(chunk: Buffer): void {
    this.#reader.take(chunk)
  }

  /** Records a request. Returns a function that takes the request's body when it is complete. */
  asked(request: IncomingMessage): (body: Buffer) => void {
    const { method = '', url: path = '', headers } = request
    const asked = { method, path, headers, body: undefined, startedMs: Date.now() }
    const index = this.#requests.push(asked) - 1
    return (body) => {
      this.#requests[index] = { ...asked, body }
    }
  }

  exchanges(): Exchange[] {
    return this.#requests.flatMap(({ body, ...request }, index) => {
      const answer = this.#answers[index]
      return answer === undefined || body === undefined ? [] : [{ ...request, body, answer }]
    })
  }
}

function record(
  request: IncomingMessage,
  response: ServerResponse,
  conversation: Conversation | undefined,
): void {
  const keep = conversation?.asked(request)
  buffer(request).then(
    (body) => {
      keep?.(body)
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"success": true}')
    },
    // The client closed the connection in the middle of its request.
    () => response.destroy(),
  )
}

/**
 * Reads HTTP/1.1 answers in the form in which the gateway writes them. They have a Content-Length, or no
 * body.
 */
class AnswerReader {
  readonly #onAnswer: (answer: Answer) => void
  #unread = Buffer.alloc(0)
  #head: Answer | undefined

  constructor(onAnswer: (answer: Answer) => void) {
    this.#onAnswer = onAnswer
  }

  take(chunk: Buffer): void {
    this.#unread = Buffer.concat([this.#unread, chunk])
    while (this.#readHead() && this.#readBody()) {
      // Each round reads one answer.
    }
  }

  #readHead(): boolean {
    if (this.#head !== undefined) return true
    const end = this.#unread.indexOf('\r\n\r\n')
    if (end === -1) return false
    const [statusLine = '', ...lines] = this.#unread.subarray(0, end).toString('latin1').split('\r\n')
    this.#unread = this.#unread.subarray(end + 4)
    const headers = new Map(
      lines.map((line): [string, string] => {
        const colon = line.indexOf(':')
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
      }),
    )
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1])
    if (Number.isNaN(status)) throw new Error(`this is no answer: ${statusLine}`)
    // The final answer follows an interim answer.
    if (status < 200) return this.#readHead()
    if (headers.has('transfer-encoding')) throw new Error('the tap reads no chunks')
    this.#head = { status, headers, body: '', atMs: Date.now() }
    return true
  }

  #readBody(): boolean {
    const head = this.#head
    if (head === undefined) return false
    const length = head.status === 204 ? 0 : Number(head.headers.get('content-length'))
    if (this.#unread.length < length) return false
    const body = this.#unread.subarray(0, length).toString('utf8')
    this.#unread = this.#unread.subarray(length)
    this.#head = undefined
    this.#onAnswer({ ...head, body })
    return true
  }
}
