import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, createServer as createTcpServer, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { portOf } from '../support/receiver.ts'
import { until } from '../support/until.ts'

/** A request of a client, and what the gateway answered. */
export type Exchange = {
  method: string
  /** Path and query. */
  path: string
  headers: IncomingHttpHeaders
  body: Buffer
  /** When its head came, in epoch milliseconds. */
  startedMs: number
  answer: Answer
}

/** `atMs`: when its head had come, in epoch milliseconds. */
export type Answer = { status: number; headers: ReadonlyMap<string, string>; body: string; atMs: number }

/** Sits between a client and the gateway, passes on every byte, and keeps what was said. */
export type Tap = {
  url: string
  /** Requests that came as a whole and were answered, of all connections. */
  exchanges(): Exchange[]
  stop(): Promise<void>
}

/**
 * A plain HTTP server gets a copy of each byte that clients send, and answers as Segment does, to nobody: it shows
 * what the clients' requests are, while the clients talk to the gateway and to no one else.
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

/** A connection on which a client's bytes are said again; what is said to it goes nowhere. */
class Copy extends Duplex {
  constructor() {
    super({ read: () => {}, write: (_chunk, _encoding, done) => done() })
  }

  /** An HTTP server sets it on its sockets. */
  setTimeout(): this {
    return this
  }
}

/** What was said on one connection: the nth answer is that to the nth request. */
class Conversation {
  readonly #requests: (Omit<Exchange, 'answer' | 'body'> & { body: Buffer | undefined })[] = []
  readonly #answers: Answer[] = []
  readonly #reader = new AnswerReader((answer) => this.#answers.push(answer))

  heard(chunk: Buffer): void {
    this.#reader.take(chunk)
  }

  /** Gives the place to put the body into. */
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
    // The client broke off.
    () => response.destroy(),
  )
}

/** Reads HTTP/1.1 answers as the gateway writes them: with a Content-Length, or without a body. */
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
      // One answer after the other.
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
    // An interim answer: the real one follows.
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
