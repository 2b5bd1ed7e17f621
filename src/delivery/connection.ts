import type { Socket } from 'node:net'
import { type buildConnector, Client, type Dispatcher } from 'undici'

/** The most that undici takes of a response head: names and values of its headers. */
export const maxHeadBytes = 16 * 1024

/**
 * The most that is read for one request until its head is complete, and in all. It bounds what undici counts
 * nowhere, such as announcements, an endless reason phrase, empty lines or chunk extensions. What goes beyond
 * costs its sender the connection; one that had answered before has answered all the same.
 */
const maxUntilHeadBytes = 2 * maxHeadBytes
const maxAnswerBytes = maxUntilHeadBytes + 64 * 1024

/**
 * What the parser gets at once. It works off all that it got, even when it has had too much: each header that
 * is one too many makes an error with its stack, and 64 KiB of them stop the process for a tenth of a second.
 */
const pieceBytes = 2 * 1024

/**
 * Most session tickets of TLS for one request; servers send one to four. Each costs a call, and none is seen
 * as a byte.
 */
const maxTickets = 16

/** Sends one request on a connection, and takes its answer. */
export type RequestHandler = Dispatcher.DispatchHandler & {
  readonly request: Dispatcher.DispatchOptions
  /** A connection took the request; nothing of it has been sent. */
  assigned(connection: Connection): void
}

export type ConnectionOptions = Omit<Client.Options, 'connect'> & { connect: buildConnector.connector }

/**
 * One connection of undici's, made anew by it when it was lost, with what undici doesn't tell: whether its
 * socket has carried a request before, and whether anything came back. All that the socket gives to undici's
 * parser is looked at on its way: it is counted, bounded, and cleared of `100 Continue`.
 */
export class Connection extends Client {
  /** For who keeps it: the next of those that it is kept with. */
  below: Connection | undefined
  #socket: Socket | undefined
  /** Requests that the present socket has carried, with the one that it carries now. */
  #requests = 0
  /** Bytes that came since the last request was taken. */
  #received = 0
  /** What these may become. */
  #maxReceived = 0
  /** Sockets that were asked for since then. */
  #dialled = 0
  /** Whether anything but line ends came since then. */
  #hasBegun = false
  #tickets = 0

  constructor(origin: string | URL, { connect, ...options }: ConnectionOptions) {
    super(origin, { ...options, connect: (to, callback) => this.#dial(connect, to, callback) })
  }

  get isConnected(): boolean {
    return this.#socket !== undefined && !this.#socket.destroyed
  }

  /** Sends its request. Nothing else may be under way. */
  take(handler: RequestHandler): void {
    this.#received = 0
    this.#maxReceived = maxUntilHeadBytes
    this.#dialled = 0
    this.#hasBegun = false
    this.#tickets = 0
    handler.assigned(this)
    this.dispatch(handler.request, handler)
  }

  /** The request is about to be written to the socket. */
  begin(): void {
    this.#requests++
  }

  /** The head of its answer is complete. */
  headCame(): void {
    this.#maxReceived = maxAnswerBytes
  }

  /** Of a request that failed before it was sent: whether it waited for a socket that others had used. */
  get wasLostUnsent(): boolean {
    return this.#requests > 0
  }

  /** Of a request that was sent: whether others had used its socket before, and no byte of an answer came. */
  get wasLostUnheard(): boolean {
    return this.#requests > 1 && this.#received === 0
  }

  /**
   * Closes the socket where the server has answered without having read the request: it may never read the
   * rest, and no other request may wait behind that. To be called in an immediate after the answer's end, and
   * not before: of what the kernel took at once, TLS says so by an immediate of Node's own, which comes
   * before those of JavaScript, and mostly after the answer.
   */
  closeIfUnread(): void {
    if (this.#socket !== undefined && this.#socket.writableLength > 0) this.#socket.destroy()
  }

  /**
   * One socket for one request: undici would make another, for ever and past all deadlines, where a new one
   * has bytes to read before the request is written, as a proxy can bring them with its own answer.
   */
  #dial(
    connect: buildConnector.connector,
    to: buildConnector.Options,
    callback: buildConnector.Callback,
  ): void {
    this.#socket = undefined
    this.#requests = 0
    this.#received = 0
    this.#dialled++
    if (this.#dialled > 1) {
      callback(lostBeforeRequest, null)
      return
    }
    connect(to, (...result) => {
      const [error, socket] = result
      if (error !== null) {
        callback(error, null)
        return
      }
      this.#watch(socket)
      callback(null, socket)
    })
  }

  #watch(socket: Socket): void {
    this.#socket = socket
    // A TLS error after the handshake leaves the socket open, in Node and in undici: the request that has it
    // would wait for its deadline, and so would the next one.
    socket.on('error', () => socket.destroy())
    socket.on('session', () => {
      this.#tickets++
      if (this.#tickets > maxTickets) socket.destroy(answerTooLong)
    })
    const read = socket.read.bind(socket)
    socket.read = (size) => {
      const isRest = size === undefined && socket.readableLength > pieceBytes
      return this.#pass(socket, read(isRest ? pieceBytes : size))
    }
  }

  #pass(socket: Socket, chunk: Buffer | null): Buffer | null {
    // What had come before the socket was destroyed is still there to be read.
    if (chunk === null || socket.destroyed) return null
    this.#received += chunk.length
    if (this.#received > this.#maxReceived) {
      socket.destroy(answerTooLong)
      return null
    }
    if (!this.#hasBegun) {
      const first = firstOfText(chunk)
      this.#hasBegun = first !== undefined
      if (first === letterR || first === letterI) {
        socket.destroy(notHttp)
        return null
      }
    }
    if (chunk[statusAt] === digitOne) tolerateContinue(chunk)
    return chunk
  }
}

/** An answer that can't be one: `code` says why. */
export class NoAnswerError extends Error {
  readonly code: string

  constructor(
    code:
      | 'SLUICE_ANSWER_NOT_HTTP'
      | 'SLUICE_ANSWER_STATUS'
      | 'SLUICE_LOST_BEFORE_REQUEST'
      | 'SLUICE_ANSWER_TOO_LONG',
    message: string,
  ) {
    super(message)
    this.code = code
  }
}

const lostBeforeRequest = new NoAnswerError(
  'SLUICE_LOST_BEFORE_REQUEST',
  'the new connection was lost before the request was written',
)
const answerTooLong = new NoAnswerError('SLUICE_ANSWER_TOO_LONG', 'the answer is too long')
const notHttp = new NoAnswerError('SLUICE_ANSWER_NOT_HTTP', 'the answer is of another protocol')

/** Of `RTSP/` and `ICE/`: undici's parser takes them for HTTP, and a 200 of theirs for a delivery. */
const letterR = 0x52
const letterI = 0x49

/** The first byte that isn't of a line end: those before an answer are passed over. */
function firstOfText(chunk: Buffer): number | undefined {
  let at = 0
  while (chunk[at] === 0x0d || chunk[at] === 0x0a) at++
  return chunk[at]
}

const statusAt = 'HTTP/1.1 '.length
const digitOne = 0x31
const digitTwo = 0x32
const continueLine = Buffer.from('HTTP/1.1 100')

/**
 * Makes `102 Processing` of each `100 Continue`, on which undici closes the connection; a client has to live
 * with announcements that it didn't ask for (RFC 9110, section 15.2). Finds those that begin a chunk, and
 * what follows them there. In a body it would change text as well, but no one reads that.
 */
function tolerateContinue(chunk: Buffer): void {
  let at = chunk.indexOf(continueLine)
  while (at !== -1) {
    chunk[at + continueLine.length - 1] = digitTwo
    at = chunk.indexOf(continueLine, at + continueLine.length)
  }
}
