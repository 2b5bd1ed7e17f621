import type { Dispatcher } from 'undici'
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

  /** Sends a request by a connection that is there, or by a new one. Ends with `leave` or `fail`. */
  send(request: Dispatcher.DispatchOptions, rider: Rider): void {
    const connection = this.#free.pop() ?? this.#open()
    if (this.#free.length < this.#unused) this.#unused = this.#free.length
    this.#inFlight++
    connection.dispatch(request, rider)
  }

  /** Sends a request that `stale` has lost once more, by a connection that is certainly new. */
  sendAnew(request: Dispatcher.DispatchOptions, rider: Rider, stale: Connection): void {
    this.#drop(stale)
    this.#open().dispatch(request, rider)
  }

  /** The answer to what it carried is complete. */
  leave(connection: Connection): void {
    this.#free.push(connection)
    this.#end()
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
    this.#all.add(connection)
    return connection
  }

  #drop(connection: Connection): void {
    this.#all.delete(connection)
    void connection.destroy()
  }
}
