import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The limit on the requests of one connection that haven't been answered yet. */
const mostUnanswered = 16
/**
 * The time within which a client has to read an answer: `takenMs`, and in addition the time that the answer
 * takes at a rate of `leastBytesPerMs`.
 */
const takenMs = 30_000
const leastBytesPerMs = 64
/**
 * If there is no room for further answers, the connections of clients that have read nothing for this time in
 * milliseconds are closed.
 */
const stalledMs = 1_000
const lookEveryMs = 500
/** The share of `maxUnreadBytes` that the answers to one holder of a token may take. */
const holderShare = 0.5

/** Why a connection was closed. */
export type ClosedClient = 'connections' | 'pipelining' | 'unread'

export type ClientLimits = {
  readonly maxConnections?: number
  /** The limit on bytes of answers that clients haven't read yet. */
  readonly maxUnreadBytes?: number
  readonly onClosed?: (why: ClosedClient) => void
}

/**
 * A connection, with its requests whose answers haven't been read to the end, by the holder of their token.
 */
type Client = {
  readonly socket: Socket
  readonly unanswered: Map<ServerResponse, string>
  /** When the client last read an answer to the end, or had nothing to read. */
  readMs: number
}

/**
 * Limits what the clients of an HTTP server can make it hold: connections, requests, and answers that nobody
 * reads. Node itself limits none of these. A role that answers small requests with large answers would run
 * out of memory.
 *
 * - If there are too many connections, the one that has been idle for the longest time is closed. So clients
 *   that send nothing can't keep others out.
 * - A connection with too many unanswered requests is closed.
 * - A client that takes too long to read an answer is cut off. It is cut off earlier if others need the room.
 */
export class Clients {
  readonly #maxConnections: number
  readonly #maxUnreadBytes: number
  readonly #onClosed: (why: ClosedClient) => void
  /** The connection whose last request has been answered for the longest time comes first. */
  readonly #clients = new Map<Socket, Client>()

  constructor(
    server: Server,
    {
      maxConnections = 1_000,
      maxUnreadBytes = 16 * 1_024 * 1_024,
      onClosed = () => undefined,
    }: ClientLimits = {},
  ) {
    this.#maxConnections = maxConnections
    this.#maxUnreadBytes = maxUnreadBytes
    this.#onClosed = onClosed
    server.on('connection', (socket) => this.#connected(socket))
    const looking = setInterval(() => this.#look(), lookEveryMs).unref()
    server.once('close', () => clearInterval(looking))
  }

  /**
   * Takes a request that has come. Returns false if its connection has too many requests that haven't been
   * answered, and closes this connection. Don't do anything for such a request.
   *
   * An HTTP client may send requests without waiting for the answers to earlier ones (pipelining). One read
   * of 64 KiB may bring 1,600 requests. Node hands over all of them at once, even if the connection was
   * closed meanwhile.
   */
  isAdmitted({ socket }: IncomingMessage, response: ServerResponse): boolean {
    const client = this.#clients.get(socket)
    if (client === undefined || socket.destroyed) return false
    if (client.unanswered.size === mostUnanswered) {
      this.#close(client, 'pipelining')
      return false
    }
    client.unanswered.set(response, '')
    response.once('close', () => {
      client.unanswered.delete(response)
      client.readMs = performance.now()
      if (this.#clients.delete(socket) && !socket.destroyed) this.#clients.set(socket, client)
    })
    return true
  }

  /**
   * Returns true if a large answer may be made for an admitted request. To make room, cuts off clients that
   * read nothing. `holder`: the name of the token that came with the request. One holder may use only a part
   * of the room.
   */
  hasRoom({ socket }: IncomingMessage, response: ServerResponse, holder?: string): boolean {
    if (holder !== undefined) this.#clients.get(socket)?.unanswered.set(response, holder)
    const isOwnRoom = holder === undefined || this.#makeRoom(this.#maxUnreadBytes * holderShare, holder)
    return isOwnRoom && this.#makeRoom(this.#maxUnreadBytes)
  }

  /**
   * Cuts off clients that read nothing until the unread answers take `maxBytes`. Returns false if they take
   * more.
   */
  #makeRoom(maxBytes: number, holder?: string): boolean {
    let unread = this.#unread(holder)
    if (unread <= maxBytes) return true
    const beforeMs = performance.now() - stalledMs
    const stalled = [...this.#clients.values()].filter(({ readMs }) => readMs < beforeMs)
    for (const client of stalled.toSorted((one, other) => one.readMs - other.readMs)) {
      const bytes = unreadBy(client, holder)
      if (bytes === 0) continue
      this.#close(client, 'unread')
      unread -= bytes
      if (unread <= maxBytes) return true
    }
    return false
  }

  #unread(holder?: string): number {
    let bytes = 0
    for (const client of this.#clients.values()) bytes += unreadBy(client, holder)
    return bytes
  }

  #connected(socket: Socket): void {
    this.#clients.set(socket, { socket, unanswered: new Map(), readMs: performance.now() })
    socket.once('close', () => this.#clients.delete(socket))
    if (this.#clients.size <= this.#maxConnections) return
    for (const client of this.#clients.values()) {
      if (client.unanswered.size > 0) continue
      this.#close(client, 'connections')
      return
    }
  }

  #look(): void {
    const nowMs = performance.now()
    for (const client of this.#clients.values()) {
      const unread = unreadBy(client)
      if (unread === 0) client.readMs = nowMs
      else if (nowMs - client.readMs > takenMs + unread / leastBytesPerMs) this.#close(client, 'unread')
    }
  }

  #close({ socket }: Client, why: ClosedClient): void {
    this.#clients.delete(socket)
    socket.destroy()
    this.#onClosed(why)
  }
}

/** Returns how many bytes of answers wait in this process until a client reads them. */
function unreadBy({ unanswered }: Client, holder?: string): number {
  let bytes = 0
  for (const [response, by] of unanswered)
    if (holder === undefined || by === holder) bytes += response.writableLength
  return bytes
}
