import { Connection, type ConnectionOptions, type RequestHandler } from './connection.ts'

/** Whom the end of a turn of the event loop is told to. */
type Waiter = { turnEnded(): void }

/** Tells of the end of the present turn of the event loop, with one immediate for all who ask. */
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

/**
 * The connections to one hook, one for each request in flight: who sends sees to the limit. undici's own pool
 * would bring a queue of 16 KiB for each hook, in which nothing ever waits, and which is most of what
 * thousands of idle hooks cost.
 *
 * Nothing is allocated for a request: what lies with an idle hook until its next message is taken for old by
 * the garbage collector, and then costs more than it did to make. So connections are linked to each other,
 * and stand in no array.
 */
export class HookPool implements Waiter {
  readonly #origin: string
  readonly #options: ConnectionOptions
  readonly #turnEnd: TurnEnd
  readonly #all = new Set<Connection>()
  /**
   * Those that carry nothing; the one that was used last is used next, so that the others' sockets can time
   * out.
   */
  readonly #free = new Stack()
  /** How many of the lowest of `#free` have not been used since `trim`. */
  #unused = 0
  /** Those whose answers were complete in this turn of the event loop. */
  readonly #left = new Stack()
  /**
   * What is sent by those as soon as they are free; what is more than they are, by new ones at the end of
   * this turn.
   */
  #waiting: RequestHandler[] = []
  #isOpeningForRest = false
  #inFlight = 0
  #idleSinceMs = 0
  #isOpen = true

  constructor(origin: string, options: ConnectionOptions, turnEnd: TurnEnd) {
    this.#origin = origin
    this.#options = options
    this.#turnEnd = turnEnd
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Whether it has had nothing to do for so long. */
  isIdleSince(beforeMs: number): boolean {
    return this.#inFlight === 0 && this.#idleSinceMs <= beforeMs
  }

  /**
   * Sends a request by a connection that is there, or by a new one. Ends with `leave` or `fail`. Where others
   * are under way, a new one is opened at the end of this turn of the event loop only: after a moment in
   * which the process got to nothing, a whole lot of records is read before the answers that came meanwhile,
   * and each would open one that is idle a moment later.
   */
  send(handler: RequestHandler): void {
    this.#inFlight++
    const connection = this.#free.pop()
    if (connection !== undefined) {
      if (this.#free.size < this.#unused) this.#unused = this.#free.size
      connection.take(handler)
    } else if (this.#all.size === 0) this.#open().take(handler)
    else {
      this.#waiting.push(handler)
      if (this.#waiting.length > this.#left.size) this.#openForRestSoon()
    }
  }

  /** Sends a request that `stale` has lost once more, by a connection that is certainly new. */
  resend(handler: RequestHandler, stale: Connection): void {
    this.#drop(stale)
    this.#open().take(handler)
  }

  /**
   * The answer to what it carried is complete. It is free in the next turn of the event loop: undici reads
   * what came behind an answer before it sends another request, but not where that one was there before the
   * answer's end. By then it is known as well whether the whole request had left.
   */
  leave(connection: Connection): void {
    if (this.#left.size === 0) this.#turnEnd.tell(this)
    this.#left.push(connection)
    this.#end()
  }

  turnEnded(): void {
    const handlers = this.#waiting.length === 0 ? this.#waiting : this.#waiting.splice(0, this.#left.size)
    for (const handler of handlers) this.#nextLeft()?.take(handler)
    for (let next = this.#nextLeft(); next !== undefined; next = this.#nextLeft()) this.#free.push(next)
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

  /** All answers that had come have been read before this. */
  readonly #openForRest = (): void => {
    this.#isOpeningForRest = false
    for (const handler of this.#waiting.splice(this.#left.size)) this.#open().take(handler)
  }

  /**
   * What it carried has failed, and nothing is sent by it again: undici says so before it has done with the
   * failure, and the process would end by an assertion of its own if it found another request.
   */
  fail(connection: Connection): void {
    this.#drop(connection)
    this.#end()
  }

  #end(): void {
    this.#inFlight--
    if (this.#inFlight === 0) this.#idleSinceMs = performance.now()
  }

  /** Lets go of connections whose sockets are closed, and which haven't been used since the last time. */
  trim(): void {
    const used = this.#free.size - this.#unused
    this.#free.dropBelow(used, (connection) => {
      if (!connection.isConnected) this.#drop(connection)
      return !connection.isConnected
    })
    this.#unused = this.#free.size
  }

  /** Closes all sockets at once, and keeps nothing of them: who has this pool may have it for long. */
  async destroy(): Promise<void> {
    this.#isOpen = false
    const all = [...this.#all]
    this.#all.clear()
    this.#free.clear()
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
    connection.destroy(letGo, ignore)
  }
}

/** Of a connection that carries nothing: nobody is told. undici would make one each time, with its stack. */
const letGo = new Error('the connection is not needed any more')
const ignore = (): void => undefined

/** Last in, first out. A connection can be in one at a time only: it is linked to the next by itself. */
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

  /** Takes out those that are to go, and are not among the first `count` from the top. */
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
