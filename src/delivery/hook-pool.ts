import { Connection, type ConnectionOptions, type Rider } from './connection.ts'

/**
 * The connections to one hook, one for each request in flight: who sends sees to the limit. undici's own pool would bring a
 * queue of 16 KiB for each hook, in which nothing ever waits, and which is most of what thousands of idle hooks cost.
 */
export class HookPool {
  readonly #origin: string
  readonly #options: ConnectionOptions
  readonly #all = new Set<Connection>()
  /** Those that carry nothing; the one that was used last is used next, so that the others' sockets can time out. */
  #free: Connection[] = []
  /** How many of the first of `#free` have not been used since `trim`. */
  #unused = 0
  /** Those whose answers were complete in this turn of the event loop. */
  #left: Connection[] = []
  /** What is sent by those as soon as they are free; what is more than they are, by new ones at the end of this turn. */
  #waiting: Rider[] = []
  #isOpeningForRest = false
  #inFlight = 0
  #idleSinceMs = 0
  #isOpen = true

  constructor(origin: string, options: ConnectionOptions) {
    this.#origin = origin
    this.#options = options
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Whether it has had nothing to do for so long. */
  isIdleSince(beforeMs: number): boolean {
    return this.#inFlight === 0 && this.#idleSinceMs <= beforeMs
  }

  /**
   * Sends a request by a connection that is there, or by a new one. Ends with `leave` or `fail`. Where others are under way, a
   * new one is opened at the end of this turn of the event loop only: after a moment in which the process got to nothing, a
   * whole lot of records is read before the answers that came meanwhile, and each would open one that is idle a moment later.
   */
  send(rider: Rider): void {
    this.#inFlight++
    const connection = this.#free.pop()
    if (connection !== undefined) {
      if (this.#free.length < this.#unused) this.#unused = this.#free.length
      connection.take(rider)
    } else if (this.#all.size === 0) this.#open().take(rider)
    else {
      this.#waiting.push(rider)
      if (this.#waiting.length > this.#left.length) this.#openForRestSoon()
    }
  }

  /** Sends a request that `stale` has lost once more, by a connection that is certainly new. */
  sendAnew(rider: Rider, stale: Connection): void {
    this.#drop(stale)
    this.#open().take(rider)
  }

  /**
   * The answer to what it carried is complete. It is free in the next turn of the event loop: undici reads what came
   * behind an answer before it sends another request, but not where that one was there before the answer's end.
   */
  leave(connection: Connection): void {
    if (this.#left.push(connection) === 1) setImmediate(this.#setFree)
    this.#end()
  }

  readonly #setFree = (): void => {
    const left = this.#left
    const riders = this.#waiting.splice(0, left.length)
    this.#left = []
    left.forEach((connection, index) => {
      const rider = riders[index]
      if (rider === undefined) this.#free.push(connection)
      else connection.take(rider)
    })
  }

  #openForRestSoon(): void {
    if (!this.#isOpeningForRest) setImmediate(this.#openForRest)
    this.#isOpeningForRest = true
  }

  /** All answers that had come have been read before this. */
  readonly #openForRest = (): void => {
    this.#isOpeningForRest = false
    for (const rider of this.#waiting.splice(this.#left.length)) this.#open().take(rider)
  }

  /**
   * What it carried has failed, and nothing is sent by it again: undici says so before it has done with the failure, and
   * the process would end by an assertion of its own if it found another request.
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
    const kept = this.#free.splice(0, this.#unused).filter((connection) => {
      if (!connection.isConnected) this.#drop(connection)
      return connection.isConnected
    })
    this.#free = [...kept, ...this.#free]
    this.#unused = this.#free.length
  }

  /** Closes all sockets at once. */
  async destroy(): Promise<void> {
    this.#isOpen = false
    await Promise.all([...this.#all].map((connection) => connection.destroy()))
  }

  #open(): Connection {
    const connection = new Connection(this.#origin, this.#options)
    if (this.#isOpen) this.#all.add(connection)
    else void connection.destroy()
    return connection
  }

  #drop(connection: Connection): void {
    this.#all.delete(connection)
    void connection.destroy()
  }
}
