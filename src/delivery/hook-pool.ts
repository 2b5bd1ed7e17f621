import { type Dispatcher, Pool } from 'undici'
import { Connection, type ConnectionOptions, type Rider } from './connection.ts'

/** The connections to one hook: undici's pool of those that are kept, and those that were made for one request. */
export class HookPool {
  readonly #origin: string
  readonly #options: ConnectionOptions
  readonly #pool: Pool
  readonly #singles = new Set<Connection>()
  #inFlight = 0
  #idleSinceMs = 0
  #isOpen = true

  constructor(origin: string, connections: number, options: ConnectionOptions) {
    this.#origin = origin
    this.#options = options
    this.#pool = new Pool(origin, {
      connections,
      connect: options.connect,
      allowH2: false,
      factory: (url) => new Connection(url, options),
    })
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Whether it has had nothing to do for so long. */
  isIdleSince(beforeMs: number): boolean {
    return this.#inFlight === 0 && this.#idleSinceMs <= beforeMs
  }

  /** Sends a request by a connection that is there, or by a new one. Each ends with `leave()`. */
  send(request: Dispatcher.DispatchOptions, rider: Rider): void {
    this.#inFlight++
    this.#pool.dispatch(request, rider)
  }

  /** Sends a request that is in flight once more, by a connection that is certainly new. */
  sendAnew(request: Dispatcher.DispatchOptions, rider: Rider): void {
    const single = new Connection(this.#origin, this.#options)
    this.#singles.add(single)
    single.dispatch(request, rider)
    // It finishes what it has been given.
    void single.close().then(() => this.#singles.delete(single))
  }

  leave(): void {
    this.#inFlight--
    if (this.#inFlight === 0) this.#idleSinceMs = performance.now()
  }

  /** Closes all sockets at once. */
  async destroy(): Promise<void> {
    this.#isOpen = false
    await Promise.all([this.#pool.destroy(), ...[...this.#singles].map((single) => single.destroy())])
  }
}
