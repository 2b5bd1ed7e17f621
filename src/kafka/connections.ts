import type { Socket } from 'node:net'
import kafkajs from 'kafkajs'
import { within } from './within.ts'

/** A connection of kafkajs 2.2.4: the parts that are used here. */
export type Connection = {
  readonly host: string
  readonly port: number
  readonly connectionTimeout: number
  readonly versions: unknown
  /** Null before the first connect. */
  readonly socket: Socket | null
  /** Set while the answer to a login is due. */
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

/** The longest time that the close of a connection waits for answers that are due, in milliseconds. */
const drainMs = 2_000
/** The time that a connect may take longer than kafkajs' own limit, in milliseconds. */
const graceMs = 1_000

/**
 * Replaces each connection of a kafkajs cluster that has ended by a new one. kafkajs would use the old one
 * again, and three things would go wrong:
 *
 * - Bytes of a truncated answer stay in its buffer, so the answers of the next socket are misread.
 * - While it closes, it waits for its answers without a limit, and accepts new requests. When it has closed,
 *   it closes the socket that was opened meanwhile, and no longer checks for late requests. Such a request
 *   never ends.
 * - While it connects, it opens a socket for each request that comes, and forgets all but the last.
 *
 * So each connect gets a new connection, callers that come together share it, and what ends rejects its
 * requests.
 */
export class Connections {
  readonly #build: ConnectionPoolBuilder['build']
  /** Pools that have connected, and weren't closed since. */
  readonly #used = new Set<ConnectionPool>()

  constructor(builder: ConnectionPoolBuilder) {
    this.#build = builder.build.bind(builder)
    builder.build = async (place) => this.#guard(await this.#build(place))
  }

  /** Rejects all requests under way, and closes all connections at once. */
  cut(reason: string): void {
    for (const pool of this.#used) cutAll(pool, reason)
    this.#used.clear()
  }

  #guard(pool: ConnectionPool): ConnectionPool {
    const connecting = new Map<number, Promise<Connection>>()
    pool.getConnection = async (index = 0) => {
      const current = connectionOf(pool, index)
      if (isOpen(current)) return current
      let connected = connecting.get(index)
      if (connected === undefined) {
        connected = this.#connect(pool, index).finally(() => connecting.delete(index))
        connecting.set(index, connected)
      }
      return connected
    }
    pool.destroy = async () => {
      const due = pool.pool.filter(isOpen).map(({ requestQueue }) => requestQueue.waitForPendingRequests())
      await within(drainMs, Promise.all(due))
      this.#used.delete(pool)
      cutAll(pool, 'the connection to the broker was closed')
    }
    return pool
  }

  async #connect(pool: ConnectionPool, index: number): Promise<Connection> {
    this.#used.add(pool)
    const connection = await this.#unused(pool, index)
    if (await within(connection.connectionTimeout + graceMs, connection.connect())) return connection
    const late = 'the broker did not accept a connection in time'
    cutOff(connection, late)
    throw errorOf(connection, late)
  }

  async #unused(pool: ConnectionPool, index: number): Promise<Connection> {
    const before = connectionOf(pool, index)
    if (before.socket === null) return before
    cutOff(before, 'the connection to the broker was closed')
    const { host, port, rack } = pool
    const fresh = connectionOf(await this.#build({ host, port, rack }), index)
    fresh.setVersions(before.versions)
    fresh.setSupportAuthenticationProtocol(before.getSupportAuthenticationProtocol())
    pool.pool[index] = fresh
    return fresh
  }
}

/** Rejects all requests of a connection, and closes it at once. Does nothing when it is closed already. */
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

function cutAll({ pool }: ConnectionPool, reason: string): void {
  for (const connection of pool) cutOff(connection, reason)
}

/** Makes an error after which kafkajs looks for another broker, and its callers try again. */
export function errorOf({ host, port }: Pick<Connection, 'host' | 'port'>, reason: string): Error {
  return new kafkajs.KafkaJSConnectionError(reason, { broker: `${host}:${port}` })
}

function connectionOf({ pool }: ConnectionPool, index: number): Connection {
  const connection = pool[index]
  if (connection === undefined) throw new Error(`kafkajs has no connection ${index} to a broker`)
  return connection
}
