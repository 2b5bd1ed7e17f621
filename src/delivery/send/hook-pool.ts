import { Connection, type ConnectionOptions, type RequestHandler, type IdleOwner } from './connection.ts'
import type { EgressHealth, EgressHook } from './egress-health.ts'
import type { OpenConnections } from './open-connections.ts'
import type { Outcome } from '../outcomes/outcome.ts'

/** An object that waits for the end of the present turn of the event loop. */
type Waiter = { turnEnded(): void }

/**
 * Reports the end of the present turn of the event loop to all waiters. All waiters share one `setImmediate`.
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

/** The objects that all pools of a sender share. */
export type PoolsShared = {
  readonly turnEnd: TurnEnd
  readonly open: OpenConnections
  readonly egress: Pick<EgressHealth, 'take'>
  /** True if connections lead to a proxy. The addresses of the hooks' servers aren't known then. */
  readonly isProxied?: boolean
}

/**
 * Limit on the free connections that are compared, to find the one whose address has had the fewest requests.
 */
const mostCompared = 16

/** Whose hook it is. The first source of the destination stands for the customer. */
export type HookOwner = Pick<EgressHook, 'destinationId' | 'sourceId'>

/**
 * The connections to one hook, one for each request in flight. The caller limits the number of requests, and
 * so the number of connections. undici's own pool isn't used, because it has a queue of 16 KiB for each hook,
 * in which nothing would ever wait. With thousands of idle hooks, these queues would take most of the memory.
 *
 * The pool allocates no object for a request. An idle hook would keep such an object until its next message,
 * and the garbage collector would move the object to its old generation. An object in the old generation
 * costs more than a new one. So connections are linked to each other instead of being kept in arrays.
 */
export class HookPool implements Waiter, IdleOwner {
  readonly #origin: string
  readonly #options: ConnectionOptions
  readonly #turnEnd: TurnEnd
  readonly #openConnections: OpenConnections
  readonly #egress: PoolsShared['egress']
  readonly #egressHook: EgressHook
  readonly #isProxied: boolean
  readonly #all = new Set<Connection>()
  /**
   * Connections without a request. The connection that was used last is used next, so that the sockets of the
   * other connections can time out. If a busy hook's host has several addresses, each of them is used in
   * turn.
   */
  readonly #free = new Stack()
  /** Connections whose answers became complete in this turn of the event loop. */
  readonly #left = new Stack()
  /**
   * Requests that wait for the connections in `#left` to become free. If there are more such requests than
   * connections in `#left`, new connections are opened at the end of this turn.
   */
  #waiting: RequestHandler[] = []
  #isOpeningForRest = false
  #inFlight = 0
  #idleSinceMs = 0
  #isOpen = true

  constructor(
    origin: string,
    options: ConnectionOptions,
    { turnEnd, open, egress, isProxied = false }: PoolsShared,
    owner?: HookOwner,
  ) {
    this.#origin = origin
    this.#options = options
    this.#turnEnd = turnEnd
    this.#openConnections = open
    this.#egress = egress
    this.#isProxied = isProxied
    const { hostname: host } = new URL(origin)
    const { destinationId, sourceId } = owner ?? { destinationId: host, sourceId: host }
    this.#egressHook = { destinationId, sourceId, host, server: undefined }
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
   * loop, because the process may have paused. After a pause, many records are read before the answers that
   * arrived during the pause. If each of these records opened a connection, most of these connections would
   * be idle a moment later.
   */
  send(handler: RequestHandler): void {
    this.#inFlight++
    this.#options.addresses?.lookAgain()
    if (this.#free.size > 0 || this.#all.size === 0) this.#serve(handler)
    else {
      this.#waiting.push(handler)
      if (this.#waiting.length > this.#left.size) this.#openForRestSoon()
    }
  }

  /** Sends a request on a free connection, or on a new one. */
  #serve(handler: RequestHandler): void {
    const connection = this.#choose()
    if (connection === undefined) {
      this.#open().take(handler)
      return
    }
    this.#free.remove(connection)
    this.#openConnections.removeIdle(connection)
    this.#openConnections.taken()
    connection.take(handler)
  }

  /**
   * Chooses the free connection for the next request. Returns `undefined` if there is none, or if a
   * connection to another address of the host is due.
   */
  #choose(): Connection | undefined {
    const { addresses } = this.#options
    const nowMs = performance.now()
    let best = this.#usable(this.#free.top, nowMs)
    if (best === undefined || addresses?.areShared !== true) return best
    let next = this.#usable(best.below, nowMs)
    for (let seen = 1; next !== undefined && seen < mostCompared; seen++) {
      if (addresses.isLess(next.address, best.address)) best = next
      next = this.#usable(next.below, nowMs)
    }
    return addresses.isAnotherDue(best.address) ? undefined : best
  }

  /**
   * Returns the first connection of the stack that may get a request, from the connection `from` downwards.
   * Closes the ones before it, which are over.
   */
  #usable(from: Connection | undefined, nowMs: number): Connection | undefined {
    let connection = from
    while (connection?.isOver(nowMs) === true) {
      const { below } = connection
      this.closeIdle(connection)
      connection = below
    }
    return connection
  }

  /**
   * Sends a request on a new connection instead of `stale`, which has lost the request or must get no further
   * one.
   */
  resend(handler: RequestHandler, stale: Connection): void {
    this.#drop(stale)
    this.#openConnections.freed()
    this.#open().take(handler)
  }

  /**
   * Takes back a connection whose answer is complete. The connection becomes free only in the next turn of
   * the event loop, because two things are known only then: whether the whole request was sent, and whether
   * more bytes arrived together with the end of the answer. undici doesn't read such bytes before it sends
   * another request on the connection.
   */
  leave(connection: Connection): void {
    if (this.#left.size === 0) this.#turnEnd.tell(this)
    this.#left.push(connection)
    this.#end()
  }

  /**
   * Takes the outcome of a request, once it is known. `sentOn`: the connection on which the request was sent.
   * `undefined`: it was not sent.
   */
  answered(outcome: Outcome, sentOn: Connection | undefined): void {
    const address = this.#isProxied ? undefined : sentOn?.address
    this.#egress.take(this.#egressHook, outcome, sentOn !== undefined, address)
  }

  turnEnded(): void {
    const handlers = this.#waiting.length === 0 ? this.#waiting : this.#waiting.splice(0, this.#left.size)
    const nowMs = performance.now()
    // With several addresses, each handler chooses among all connections that have become free.
    const mayChoose = this.#options.addresses?.areShared === true
    for (const handler of mayChoose ? none : handlers) {
      const connection = this.#nextLeft()
      if (connection?.isOver(nowMs) === true) this.resend(handler, connection)
      else connection?.take(handler)
    }
    for (let next = this.#nextLeft(); next !== undefined; next = this.#nextLeft()) this.#keep(next, nowMs)
    for (const handler of mayChoose ? handlers : none) this.#serve(handler)
  }

  #keep(connection: Connection, nowMs: number): void {
    this.#openConnections.freed()
    if (!this.#isOpen) return
    if (connection.isOver(nowMs)) {
      this.#drop(connection)
      return
    }
    this.#free.push(connection)
    if (connection.isConnected) this.#openConnections.addIdle(connection, this)
  }

  /** Closes an idle connection of any pool, because no file could be opened for a request. */
  giveUpIdle(): void {
    this.#openConnections.closeFirst()
  }

  closeIdle(connection: Connection): void {
    this.#free.remove(connection)
    this.#drop(connection)
  }

  idleSocketClosed(connection: Connection): void {
    this.#openConnections.removeIdle(connection)
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
   * Opens connections for the requests for which no connection has become free. When this function runs, each
   * answer that has arrived has already been read.
   */
  readonly #openForRest = (): void => {
    this.#isOpeningForRest = false
    for (const handler of this.#waiting.splice(this.#left.size)) this.#open().take(handler)
  }

  /**
   * Drops a connection whose request failed. The connection must not be used again, because undici calls the
   * handler before it has cleaned up the connection. If undici then found another request on the connection,
   * a failed assertion would crash the process.
   */
  fail(connection: Connection): void {
    this.#drop(connection)
    this.#openConnections.freed()
    this.#end()
  }

  #end(): void {
    this.#inFlight--
    if (this.#inFlight === 0) this.#idleSinceMs = performance.now()
  }

  /** Drops the connections that have a closed socket and haven't been used since the last call of `trim`. */
  trim(): void {
    for (let connection = this.#free.top; connection !== undefined;) {
      const { below } = connection
      if (!connection.isUsed && !connection.isConnected) this.closeIdle(connection)
      connection.isUsed = false
      connection = below
    }
  }

  /**
   * Closes all sockets at once. After that, the pool keeps no reference to them, because a target may keep a
   * reference to the pool for a long time.
   */
  async destroy(): Promise<void> {
    this.#isOpen = false
    const all = [...this.#all]
    this.#all.clear()
    this.#free.clear()
    for (const connection of all) this.#openConnections.removeIdle(connection)
    await Promise.all(all.map((connection) => connection.destroy()))
  }

  #open(): Connection {
    this.#openConnections.taken()
    const connection = new Connection(this.#origin, this.#options)
    if (this.#isOpen) this.#all.add(connection)
    else void connection.destroy()
    return connection
  }

  #drop(connection: Connection): void {
    this.#all.delete(connection)
    this.#openConnections.removeIdle(connection)
    connection.destroy(letGo, ignore)
  }
}

/**
 * The error with which a connection without a request is closed. Nobody sees this error. It is made only
 * once, because otherwise undici would make an error with a stack for each connection.
 */
const letGo = new Error('the connection is not needed any more')
const ignore = (): void => undefined
const none: readonly never[] = []

/**
 * A stack of connections: last in, first out. A connection can be in only one stack at a time, because each
 * connection itself has the links to the connections below and above.
 */
class Stack {
  #top: Connection | undefined
  #size = 0

  get top(): Connection | undefined {
    return this.#top
  }

  get size(): number {
    return this.#size
  }

  push(connection: Connection): void {
    connection.below = this.#top
    if (this.#top !== undefined) this.#top.above = connection
    this.#top = connection
    this.#size++
  }

  pop(): Connection | undefined {
    const connection = this.#top
    if (connection !== undefined) this.remove(connection)
    return connection
  }

  /** Removes a connection that is in this stack. */
  remove(connection: Connection): void {
    const { below, above } = connection
    if (above === undefined) this.#top = below
    else above.below = below
    if (below !== undefined) below.above = above
    connection.below = undefined
    connection.above = undefined
    this.#size--
  }

  clear(): void {
    this.#top = undefined
    this.#size = 0
  }
}
