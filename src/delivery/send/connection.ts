import type { Socket } from 'node:net'
import type { buildConnector, Dispatcher } from 'undici'
import Client from 'undici/lib/dispatcher/client.js'
import type { Connector, DialOptions, HostAddresses } from '../connect/host-addresses.ts'

/**
 * Limit on the headers of one response (names and values), in bytes. undici refuses a response that exceeds
 * this limit.
 */
export const maxHeadBytes = 16 * 1024

/**
 * Limits on the bytes that are read for one request. The first limit applies until the response head is
 * complete, and the second to the whole answer. The limits also count what undici doesn't count, such as 1xx
 * answers, an endless reason phrase, empty lines and chunk extensions. If a server exceeds a limit, the
 * connection is closed. If the response head was complete by then, the answer still counts.
 */
const maxUntilHeadBytes = 2 * maxHeadBytes
const maxAnswerBytes = maxUntilHeadBytes + 64 * 1024

/**
 * Limit on the bytes that undici's parser gets at once. The parser processes everything that it was given,
 * even headers beyond its own limit. For each header beyond that limit, the parser makes an error with a
 * stack. 64 KiB of such headers would block the process for a tenth of a second.
 */
const pieceBytes = 2 * 1024

/**
 * Limit on the TLS session tickets that a server may send during one request. Servers usually send one to
 * four tickets. This limit is necessary, because each ticket costs a call, and the limits on bytes don't
 * count tickets.
 */
const maxTickets = 16

/** Sends one request on a connection, and takes its answer. */
export type RequestHandler = Dispatcher.DispatchHandler & {
  readonly request: Dispatcher.DispatchOptions
  /** Called when a connection has taken the request, before anything of the request is sent. */
  assigned(connection: Connection): void
}

export type ConnectionOptions = Omit<Client.Options, 'connect'> & {
  connect: Connector
  /** The addresses of the hook's host. `undefined`: the host is an address, or a proxy resolves its name. */
  addresses?: HostAddresses | undefined
  /**
   * How old a connection may get, in milliseconds. Each connection gets a limit of its own, up to a fifth
   * shorter or longer.
   */
  maxAgeMs?: number
}

/**
 * The usual age, in milliseconds, after which a connection gets no further request. A load balancer that was
 * added, another server behind a proxy, or a new certificate is seen only by a new connection.
 */
const usualMaxAgeMs = 10 * 60_000

/**
 * A connection that undici manages. If the connection is lost, undici opens it again. This class adds what
 * undici doesn't report: whether the socket was used for a request before, and whether any byte of an answer
 * came. All bytes from the socket to undici's parser go through this class. It counts them, limits them, and
 * changes `100 Continue`, which undici doesn't accept.
 */
export class Connection extends Client {
  /**
   * The neighbours of this connection in the pool's stack: the connection below it, and the connection above
   * it.
   */
  below: Connection | undefined
  above: Connection | undefined
  /** True if the connection was used for a request since the pool last looked for unused connections. */
  isUsed = false
  /** The address of the peer of the last socket. Through a proxy, it is the address of the proxy. */
  address: string | undefined
  /** Links of `OpenConnections`. `idleOwner` is set exactly while this connection is idle. */
  idleOwner: IdleOwner | undefined
  idleBefore: Connection | undefined
  idleAfter: Connection | undefined
  readonly #addresses: HostAddresses | undefined
  readonly #maxAgeMs: number
  #socket: Socket | undefined
  /** The time from which the present socket gets no further request, on the clock of `performance.now()`. */
  #endsAtMs = 0
  /**
   * True if `address` was an address of the host's name when the socket was opened. It isn't if the address
   * is spelled in another way.
   */
  #isOfName = false
  /** Number of requests that were sent on the present socket, including the current one. */
  #requests = 0
  /** Number of bytes that came since the last request was taken. */
  #received = 0
  /** Upper limit of `#received` for the current request. */
  #maxReceived = 0
  /** Number of sockets opened since the last request was taken. */
  #dialled = 0
  /** True if anything except line ends came since the last request was taken. */
  #hasBegun = false
  #tickets = 0

  constructor(
    origin: string | URL,
    { connect, addresses, maxAgeMs = usualMaxAgeMs, ...options }: ConnectionOptions,
  ) {
    super(origin, {
      ...options,
      connect: (to, callback) => this.#dial(connect, { ...to, addresses }, callback),
    })
    this.#addresses = addresses
    this.#maxAgeMs = maxAgeMs
  }

  get isConnected(): boolean {
    return this.#socket !== undefined && !this.#socket.destroyed
  }

  /**
   * Returns true if the connection must get no further request: it is too old, or its address doesn't belong
   * to the host's name any more. `nowMs`: the time on the clock of `performance.now()`.
   */
  isOver(nowMs: number): boolean {
    if (!this.isConnected) return false
    return nowMs >= this.#endsAtMs || (this.#isOfName && this.#addresses?.has(this.address) === false)
  }

  /** Sends the handler's request. No other request may be under way. */
  take(handler: RequestHandler): void {
    if (this.isConnected) this.#addresses?.requested(this.address)
    this.#received = 0
    this.#maxReceived = maxUntilHeadBytes
    this.#dialled = 0
    this.#hasBegun = false
    this.#tickets = 0
    this.isUsed = true
    handler.assigned(this)
    this.dispatch(handler.request, handler)
  }

  /** Called immediately before the request is written to the socket. */
  begin(): void {
    this.#requests++
  }

  /** Called when the head of the answer is complete. */
  headCame(): void {
    this.#maxReceived = maxAnswerBytes
  }

  /**
   * Returns true if earlier requests had used the socket. Use this only after a request failed before it was
   * sent.
   */
  get wasLostUnsent(): boolean {
    return this.#requests > 0
  }

  /**
   * Returns true if a request that was sent got no byte of an answer, and earlier requests had used its
   * socket.
   */
  get wasLostUnheard(): boolean {
    return this.#requests > 1 && this.#received === 0
  }

  /**
   * Closes the socket if the server answered before it had read the whole request. The server may never read
   * the rest of the request, and then the next request would wait behind it.
   *
   * Call this method in an immediate (`setImmediate`) after the end of the answer, and not earlier. With TLS,
   * Node learns in an internal immediate that the kernel took the bytes. This internal immediate usually runs
   * after the end of the answer, but before the immediates of JavaScript.
   */
  closeIfUnread(): void {
    if (this.#socket !== undefined && this.#socket.writableLength > 0) this.#socket.destroy()
  }

  /**
   * Opens one socket for one request, and refuses to open a second one. This limit is necessary, because a
   * new socket can have bytes to read before the request is written. For example, a proxy can send such bytes
   * with its own answer. Without the limit, undici would then open new sockets forever, past all deadlines.
   */
  #dial(connect: Connector, to: DialOptions, callback: buildConnector.Callback): void {
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
    this.address = socket.remoteAddress
    this.#isOfName = this.#addresses?.has(this.address) === true
    // Connections that were opened together don't all end together.
    this.#endsAtMs = performance.now() + this.#maxAgeMs * (0.8 + 0.4 * Math.random())
    // Neither Node nor undici closes the socket after a TLS error that follows the handshake. The request on
    // that socket, and also the next request, would wait until the deadline.
    socket.on('error', () => socket.destroy())
    socket.on('close', () => {
      if (socket === this.#socket) this.idleOwner?.idleSocketClosed(this)
    })
    socket.on('session', () => {
      this.#tickets++
      if (this.#tickets > maxTickets) socket.destroy(answerTooLong)
    })
    readBeforeFailedWrite(socket)
    const read = socket.read.bind(socket)
    socket.read = (size) => {
      const isRest = size === undefined && socket.readableLength > pieceBytes
      return this.#pass(socket, read(isRest ? pieceBytes : size))
    }
  }

  #pass(socket: Socket, chunk: Buffer | null): Buffer | null {
    // Bytes that came before the socket was destroyed can still be read from it.
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

/** An error for an answer that isn't valid; `code` says why. */
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

/**
 * First letters of `RTSP/` and `ICE/`. undici's parser treats these protocols as HTTP, so a 200 in one of
 * them would count as a success.
 */
const letterR = 0x52
const letterI = 0x49

/** Returns the first byte that isn't part of a line end. Line ends before an answer are skipped. */
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
 * Turns each `100 Continue` into `102 Processing`. undici closes the connection on a 100, but a client has to
 * accept 1xx answers that it didn't ask for (RFC 9110, section 15.2). Call this function for a chunk that
 * begins with a 1xx answer. It changes each `100 Continue` in the chunk. If the chunk has the same text in a
 * body, this text is changed too, which does no harm.
 */
function tolerateContinue(chunk: Buffer): void {
  let at = chunk.indexOf(continueLine)
  while (at !== -1) {
    chunk[at + continueLine.length - 1] = digitTwo
    at = chunk.indexOf(continueLine, at + continueLine.length)
  }
}

/** The pool of an idle connection. */
export type IdleOwner = {
  /** Closes an idle connection of this pool, and calls `removeIdle` for it. */
  closeIdle(connection: Connection): void
  idleSocketClosed(connection: Connection): void
}

type Done = (error?: Error | null) => void

/**
 * Makes a socket read what has arrived before it reports that a write failed. A server may answer before it
 * has read the whole request, and then close the connection. If Sluice writes at that moment, the write fails
 * although the answer has arrived. Node destroys a socket whose write failed, and would drop this answer.
 */
function readBeforeFailedWrite(socket: Socket): void {
  const write = socket._write.bind(socket)
  const writev = socket._writev?.bind(socket)
  let last: { readonly done: Done; readonly later: Done } | undefined

  /** A stream passes the same callback with all of its writes, so that its wrapper is made only once. */
  function afterReading(done: Done): Done {
    if (last?.done !== done) last = { done, later: (error) => tell(done, error) }
    return last.later
  }

  socket._write = (chunk, encoding, done) => write(chunk, encoding, afterReading(done))
  if (writev !== undefined) socket._writev = (chunks, done) => writev(chunks, afterReading(done))
}

function tell(done: Done, error?: Error | null): void {
  if (error === undefined || error === null || !isLost(error)) done(error)
  // The first immediate runs in the present turn of the event loop. The second immediate runs after the
  // next turn has read from all sockets.
  else setImmediate(() => setImmediate(done, error))
}

/** Returns true if a write failed because the other side has closed or reset the connection. */
function isLost(error: Error): boolean {
  return 'code' in error && (error.code === 'EPIPE' || error.code === 'ECONNRESET')
}
