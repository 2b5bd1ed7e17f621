import { Connection, type ConnectionOptions, type RequestHandler } from './connection.ts'
import type { IdleConnections, IdleOwner } from './idle-connections.ts'

/** An object that waits for the end of the present turn of the event loop. */
type Waiter = { turnEnded(): void }

/**
 * Reports the end of the present turn of the event loop to all waiters, with a single immediate
 * (`setImmediate`).
 */
export class TurnEnd {
  #waiters: Waiter[] = []

  tell(waiter: Waiter): void {
    if (this.#waiters.push(waiter) === 1) setImmediate(this.#tellAll)
  }

  readonly #tellAll = (): void => {
    const waiters = this.#waiters
    this.#waiters = []
    for (const waiter of waiters) waiter.turnEnded()
  }
}

/** What all pools of a sender share. */
export type PoolsShared = { readonly turnEnd: TurnEnd; readonly idle: IdleConnections }

/**
 * The connections to one hook, one for each request in flight. The caller limits the number of connections.
 * undici's own pool would add a queue of 16 KiB for each hook, although nothing ever waits in it. With
 * thousands of idle hooks, these queues would take most of the memory.
 *
 * The pool allocates no object for a request. Such an object would stay with an idle hook until the hook's
 * next message, and the garbage collector would move the object to its old generation. There the object would
 * cost more than a new one. So connections are linked to each other instead of being kept in arrays.
 */
export class HookPool implements Waiter, IdleOwner {
  readonly #origin: string
  readonly #options: ConnectionOptions
  readonly #turnEnd: TurnEnd
  readonly #idle: IdleConnections
  readonly #all = new Set<Connection>()
  /**
   * Connections that carry no request. The connection that was used last is used next, so that the sockets of
   * the other connections can time out.
   */
  readonly #free = new Stack()
  /** Number of connections at the bottom of `#free` that have not been used since the last `trim`. */
  #unused = 0
  /** Connections whose answers became complete in this turn of the event loop. */
  readonly #left = new Stack()
  /**
   * Requests that wait for the connections in `#left` to become free. If there are more requests than
   * connections, new connections are opened at the end of this turn.
   */
  #waiting: RequestHandler[] = []
  #isOpeningForRest = false
  #inFlight = 0
  #idleSinceMs = 0
  #isOpen = true

  constructor(origin: string, options: ConnectionOptions, { turnEnd, idle }: PoolsShared) {
    this.#origin = origin
    this.#options = options
    this.#turnEnd = turnEnd
    this.#idle = idle
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Returns true if the pool has had no request in flight since `beforeMs` or longer. */
  isIdleSince(beforeMs: number): boolean {
    return this.#inFlight === 0 && this.#idleSinceMs <= beforeMs
  }

  /**
   * Sends a request on a free connection, or on a new one. When the request has ended, call `leave` or
   * `fail`.
   *
   * If the pool already has connections, a new connection is opened only at the end of this turn of the event
   * loop. The reason is that the process may have paused. After a pause, many records are read before the
   * answers that arrived during the pause. If each of these records opened a connection, the connections
   * would be idle a moment later.
   */
  send(handler: RequestHandler): void {
    this.#inFlight++
    const connection = this.#free.pop()
    if (connection !== undefined) {
      if (this.#free.size < this.#unused) this.#unused = this.#free.size
      this.#idle.remove(connection)
      connection.take(handler)
    } else if (this.#all.size === 0) this.#open().take(handler)
    else {
      this.#waiting.push(handler)
      if (this.#waiting.length > this.#left.size) this.#openForRestSoon()
    }
  }

  /** Sends a request again on a new connection, after the connection `stale` lost the request. */
  resend(handler: RequestHandler, stale: Connection): void {
    this.#drop(stale)
    this.#open().take(handler)
  }

  /**
   * Takes back a connection whose answer is complete. The connection becomes free only in the next turn of
   * the event loop. Before undici sends another request, it reads bytes that arrived after an answer, but not
   * bytes that arrived together with the end of the answer. By the next turn, undici has read those bytes
   * too, and it is known whether the whole request was sent.
   */
  leave(connection: Connection): void {
    if (this.#left.size === 0) this.#turnEnd.tell(this)
    this.#left.push(connection)
    this.#end()
  }

  turnEnded(): void {
    const handlers = this.#waiting.length === 0 ? this.#waiting : this.#waiting.splice(0, this.#left.size)
    for (const handler of handlers) this.#nextLeft()?.take(handler)
    for (let next = this.#nextLeft(); next !== undefined; next = this.#nextLeft()) this.#keep(next)
  }

  #keep(connection: Connection): void {
    this.#free.push(connection)
    this.#idle.add(connection, this)
  }

  closeOldestIdle(): void {
    this.#free.dropBelow(this.#free.size - 1, (connection) => {
      this.#drop(connection)
      return true
    })
    if (this.#unused > 0) this.#unused--
  }

  #nextLeft(): Connection | undefined {
    const connection = this.#left.pop()
    connection?.closeIfUnread()
    return connection
  }

  #openForRestSoon(): void {
    if (!this.#isOpeningForRest) setImmediate(this.#openForRest)
    this.#isOpeningForRest = true
  }

  /**
   * Opens connections for the requests for which no connection has become free. Before this function runs,
   * all answers that had arrived have been read.
   */
  readonly #openForRest = (): void => {
    this.#isOpeningForRest = false
    for (const handler of this.#waiting.splice(this.#left.size)) this.#open().take(handler)
  }

  /**
   * Drops a connection whose request failed. The connection must not be used again, because undici reports
   * the failure before it has finished its own handling of the failure. If undici then found another request
   * on the connection, a failed assertion would crash the process.
   */
  fail(connection: Connection): void {
    this.#drop(connection)
    this.#end()
  }

  #end(): void {
    this.#inFlight--
    if (this.#inFlight === 0) this.#idleSinceMs = performance.now()
  }

  /** Drops the connections that have a closed socket and haven't been used since the last call of `trim`. */
  trim(): void {
    const used = this.#free.size - this.#unused
    this.#free.dropBelow(used, (connection) => {
      if (!connection.isConnected) this.#drop(connection)
      return !connection.isConnected
    })
    this.#unused = this.#free.size
  }

  /**
   * Closes all sockets at once. The pool then keeps no reference to them, because a target may keep a
   * reference to the pool for a long time.
   */
  async destroy(): Promise<void> {
    this.#isOpen = false
    const all = [...this.#all]
    this.#all.clear()
    this.#free.clear()
    for (const connection of all) this.#idle.remove(connection)
    await Promise.all(all.map((connection) => connection.destroy()))
  }

  #open(): Connection {
    const connection = new Connection(this.#origin, this.#options)
    if (this.#isOpen) this.#all.add(connection)
    else void connection.destroy()
    return connection
  }

  #drop(connection: Connection): void {
    this.#all.delete(connection)
    this.#idle.remove(connection)
    connection.destroy(letGo, ignore)
  }
}

/**
 * The error with which a connection without a request is closed. Nobody sees this error. Without this
 * constant, undici would make an error with a stack each time.
 */
const letGo = new Error('the connection is not needed any more')
const ignore = (): void => undefined

/**
 * A stack of connections: last in, first out. A connection can be in only one stack at a time, because each
 * connection itself has the link to the connection below.
 */
class Stack {
  #top: Connection | undefined
  #size = 0

  get size(): number {
    return this.#size
  }

  push(connection: Connection): void {
    connection.below = this.#top
    this.#top = connection
    this.#size++
  }

  pop(): Connection | undefined {
    const connection = this.#top
    if (connection === undefined) return undefined
    this.#top = connection.below
    connection.below = undefined
    this.#size--
    return connection
  }

  clear(): void {
    this.#top = undefined
    this.#size = 0
  }

  /**
   * Removes the connections for which `isToGo` returns true. The upper `count` connections stay in any case.
   */
  dropBelow(count: number, isToGo: (connection: Connection) => boolean): void {
    let above: Connection | undefined
    let connection = this.#top
    for (let place = 0; connection !== undefined; place++) {
      const { below } = connection
      if (place < count || !isToGo(connection)) above = connection
      else {
        if (above === undefined) this.#top = below
        else above.below = below
        connection.below = undefined
        this.#size--
      }
      connection = below
    }
  }
}
