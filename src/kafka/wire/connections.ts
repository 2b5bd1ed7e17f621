import type { Socket } from 'node:net'
import kafkajs from 'kafkajs'
import type { RequestQueue } from './request-queue.ts'
import type { Throttle } from './throttle.ts'
import { within } from '../../async/within.ts'

/** The parts of a kafkajs 2.2.4 connection that are used here. */
export type Connection = {
  readonly host: string
  readonly port: number
  connectionTimeout: number
  readonly versions: unknown
  /** Null before the first connect. */
  readonly socket: Socket | null
  /** Not null while the connection waits for the answer to a login. */
  readonly authHandlers: { onError(): void } | null
  readonly requestQueue: RequestQueue
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
  build(
    place?: Pick<ConnectionPool, 'host' | 'port'> & { readonly rack?: string | null },
  ): Promise<ConnectionPool>
}

/** The longest time for which a closing connection waits for outstanding answers, in milliseconds. */
const drainMs = 2_000
/**
 * How much later than the limit in `#connect` kafkajs' own limit ends an attempt to connect, in milliseconds.
 * kafkajs' error doesn't say how far the attempt has come.
 */
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
  /** Pools with a connection that is open, or that may open. */
  readonly #used = new Set<GuardedPool>()
  readonly #guarded = new WeakMap<ConnectionPool, GuardedPool>()
  /** See `readsFromMs`. */
  #readsFromMs = -Infinity
  #cuts = 0

  constructor(builder: ConnectionPoolBuilder, onThrottle: (throttle: Throttle) => void) {
    const original = builder.build.bind(builder)
    const build: ConnectionPoolBuilder['build'] = async (place) => {
      const pool = await original(place)
      for (const connection of pool.pool)
        watch(connection, (throttle) => {
          this.#readsFromMs = Math.max(this.#readsFromMs, performance.now() + throttle.ms)
          onThrottle(throttle)
        })
      return pool
    }
    builder.build = async (place) => {
      const guarded = new GuardedPool(await build(place), build, this.#used)
      this.#guarded.set(guarded.pool, guarded)
      return guarded.pool
    }
  }

  /**
   * The time from which all brokers that have throttled this cluster's connections read them again, by
   * `performance.now`. -Infinity before the first throttle.
   */
  get readsFromMs(): number {
    return this.#readsFromMs
  }

  /** Rejects all requests under way to one broker, and closes its connections at once. */
  cutPool(pool: ConnectionPool, reason: string): void {
    const guarded = this.#guarded.get(pool)
    guarded?.cut(reason)
    if (guarded !== undefined) this.#used.delete(guarded)
  }

  /**
   * Rejects all requests under way, and closes all connections at once. This includes connections that are
   * being opened.
   */
  cut(reason: string): void {
    this.#cuts++
    for (const pool of this.#used) pool.cut(reason)
    this.#used.clear()
  }

  get cuts(): number {
    return this.#cuts
  }
}

/** Lets a connection report its throttles, and ends it when one of its requests has no answer in time. */
function watch(connection: Connection, onThrottle: (throttle: Throttle) => void): void {
  const { requestQueue } = connection
  requestQueue.greetingTimeoutMs = connection.connectionTimeout
  connection.connectionTimeout += graceMs
  requestQueue.onThrottle = onThrottle
  requestQueue.onSilence = (apiName) => cutOff(connection, `an earlier request had no answer: ${apiName}`)
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
    const timeoutMs = connection.connectionTimeout - graceMs
    if (await within(timeoutMs, ended)) return connection
    const seconds = timeoutMs / 1_000
    const late = hasAccepted(connection.socket)
      ? `it accepts connections, and does not agree on TLS (within ${seconds} s)`
      : `it does not accept a connection (within ${seconds} s)`
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

export const accepted = new WeakSet<Socket>()

/** Returns true if the peer has accepted a connection, even if TLS isn't agreed on. */
function hasAccepted(socket: Socket | null): boolean {
  return socket !== null && accepted.has(socket)
}
