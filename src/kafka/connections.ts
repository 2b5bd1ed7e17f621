import type { Socket } from 'node:net'
import kafkajs from 'kafkajs'
import { within } from './within.ts'

/** The parts of a kafkajs 2.2.4 connection that are used here. */
export type Connection = {
  readonly host: string
  readonly port: number
  readonly connectionTimeout: number
  readonly versions: unknown
  /** Null before the first connect. */
  readonly socket: Socket | null
  /** Not null while the connection waits for the answer to a login. */
  readonly authHandlers: { onError(): void } | null
  readonly requestQueue: { waitForPendingRequests(): Promise<void>; destroy(): void }
  authenticatedAt: unknown
  connectionStatus: 'connected' | 'disconnecting' | 'disconnected'
  connect(): Promise<unknown>
  rejectRequests(error: Error): void
  setVersions(versions: unknown): void
  getSupportAuthenticationProtocol(): boolean | null
  setSupportAuthenticationProtocol(isSupported: boolean | null): void
}

/** The connections of kafkajs to one broker: one for fetches, and one for all other requests. */
export type ConnectionPool = {
  readonly host: string
  readonly port: number
  readonly rack: string | null
  readonly pool: Connection[]
  getConnection(index?: number): Promise<Connection>
  destroy(): Promise<void>
}

export type ConnectionPoolBuilder = {
  build(place?: Pick<ConnectionPool, 'host' | 'port' | 'rack'>): Promise<ConnectionPool>
}

/** The longest time for which a closing connection waits for outstanding answers, in milliseconds. */
const drainMs = 2_000
/** How much longer than kafkajs' own limit an attempt to connect may take, in milliseconds. */
const graceMs = 1_000

/**
 * Replaces each ended connection of a kafkajs cluster by a new connection. kafkajs itself would use the old
 * connection again. Then three things would go wrong:
 *
 * - Bytes of a truncated answer stay in the old connection's buffer, so the answers from the next socket are
 *   misread.
 * - While the old connection closes, it waits for its answers without a time limit, and accepts new requests.
 *   Once it has closed, it also closes the socket that was opened meanwhile, and no longer checks for
 *   requests that are late. A late request then never ends.
 * - While the old connection connects again, it opens a socket for each request that comes, and forgets all
 *   of these sockets but the last.
 *
 * So each attempt to connect makes a new connection. If several callers connect at the same time, they share
 * one connection. When a connection ends, its requests are rejected.
 */
export class Connections {
  readonly #build: ConnectionPoolBuilder['build']
  /** Pools with a connection that is open, or that may open. */
  readonly #used = new Set<GuardedPool>()

  constructor(builder: ConnectionPoolBuilder) {
    this.#build = builder.build.bind(builder)
    builder.build = async (place) => new GuardedPool(await this.#build(place), this.#build, this.#used).pool
  }

  /**
   * Rejects all requests under way, and closes all connections at once. This includes connections that are
   * being opened.
   */
  cut(reason: string): void {
    for (const pool of this.#used) pool.cut(reason)
    this.#used.clear()
  }
}

/** Replaces the methods by which one pool of kafkajs opens and closes connections. */
class GuardedPool {
  readonly pool: ConnectionPool
  readonly #build: ConnectionPoolBuilder['build']
  /** All pools with a connection that is open, or that may open. This pool adds itself and removes itself. */
  readonly #used: Set<GuardedPool>
  readonly #connecting = new Map<number, Promise<Connection>>()
  /** Connections that wait for their last answers. They take no new requests. */
  readonly #closing = new Set<Connection>()
  #cuts = 0

  constructor(pool: ConnectionPool, build: ConnectionPoolBuilder['build'], used: Set<GuardedPool>) {
    this.pool = pool
    this.#build = build
    this.#used = used
    pool.getConnection = (index = 0) => this.#connectionOf(index)
    pool.destroy = () => this.#close()
  }

  cut(reason: string): void {
    this.#cuts++
    for (const connection of [...this.pool.pool, ...this.#closing]) cutOff(connection, reason)
  }

  async #connectionOf(index: number): Promise<Connection> {
    const current = connectionAt(this.pool, index)
    if (isOpen(current) && !this.#closing.has(current)) return current
    let connected = this.#connecting.get(index)
    if (connected === undefined) {
      connected = this.#connect(index).finally(() => {
        this.#connecting.delete(index)
        this.#leaveIfUnused()
      })
      this.#connecting.set(index, connected)
    }
    return connected
  }

  /**
   * Closes the connections that are open at the time of the call. kafkajs closes a pool whenever one caller
   * of the pool could not connect. By this time, the next caller may be connecting already. So a connection
   * that is being opened isn't closed.
   */
  async #close(): Promise<void> {
    const open = this.pool.pool.filter(isOpen)
    for (const connection of open) this.#closing.add(connection)
    const due = open.map(({ requestQueue }) => requestQueue.waitForPendingRequests())
    await within(drainMs, Promise.all(due))
    for (const connection of open) {
      cutOff(connection, wasClosed)
      this.#closing.delete(connection)
    }
    this.#leaveIfUnused()
  }

  #leaveIfUnused(): void {
    const pending = this.#connecting.size + this.#closing.size
    if (pending === 0 && !this.pool.pool.some(isOpen)) this.#used.delete(this)
  }

  async #connect(index: number): Promise<Connection> {
    const cuts = this.#cuts
    this.#used.add(this)
    const connection = await this.#unused(index)
    if (cuts !== this.#cuts) throw errorOf(connection, wasClosed)
    const connected = connection.connect()
    const ended = Promise.race([connected, closeOf(connection)])
    if (await within(connection.connectionTimeout + graceMs, ended)) return connection
    const late = 'the broker did not accept a connection in time'
    cutOff(connection, late)
    throw errorOf(connection, late)
  }

  async #unused(index: number): Promise<Connection> {
    const before = connectionAt(this.pool, index)
    if (before.socket === null) return before
    if (!this.#closing.has(before)) cutOff(before, wasClosed)
    const { host, port, rack } = this.pool
    const fresh = connectionAt(await this.#build({ host, port, rack }), index)
    fresh.setVersions(before.versions)
    fresh.setSupportAuthenticationProtocol(before.getSupportAuthenticationProtocol())
    this.pool.pool[index] = fresh
    return fresh
  }
}

const wasClosed = 'the connection to the broker was closed'

/**
 * Rejects when the socket of a connection is closed. In most cases kafkajs rejects the attempt to connect in
 * the same turn of the event loop, with a more exact error. So this promise rejects one turn later than
 * kafkajs. The promise is needed because kafkajs makes no error for a socket that is destroyed or ends before
 * it is connected.
 */
function closeOf(connection: Connection): Promise<never> {
  return new Promise((_resolve, reject) => {
    connection.socket?.once('close', () => setImmediate(() => reject(errorOf(connection, wasClosed))))
  })
}

/**
 * Rejects all requests of a connection, and closes the connection at once. Does nothing if the connection is
 * closed already.
 */
export function cutOff(connection: Connection, reason: string): void {
  connection.connectionStatus = 'disconnected'
  connection.authenticatedAt = null
  connection.requestQueue.destroy()
  connection.rejectRequests(errorOf(connection, reason))
  connection.authHandlers?.onError()
  connection.socket?.destroy()
}

function isOpen({ connectionStatus }: Connection): boolean {
  return connectionStatus === 'connected'
}

/** Makes an error after which kafkajs looks for another broker, and its callers try again. */
export function errorOf({ host, port }: Pick<Connection, 'host' | 'port'>, reason: string): Error {
  return new kafkajs.KafkaJSConnectionError(reason, { broker: `${host}:${port}` })
}

function connectionAt({ pool }: ConnectionPool, index: number): Connection {
  const connection = pool[index]
  if (connection === undefined) throw new Error(`kafkajs has no connection ${index} to a broker`)
  return connection
}
