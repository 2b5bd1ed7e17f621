import type { Connection, IdleOwner } from './connection.ts'

export type OpenConnectionsOptions = {
  /** The limit on idle connections. Each takes about 10 KB of memory, or more with TLS. */
  readonly maxIdle: number
  /**
   * The limit on all connections, because each connection is an open file. Connections with requests have
   * precedence: if there would be too many connections, idle ones are closed.
   */
  readonly maxOpen: number
  /** Called for each idle connection that is closed because of a limit. */
  readonly onClosed?: () => void
}

/**
 * Limits the number of idle connections in all pools of a process. If there are too many, closes the
 * connection that has been idle for the longest time. Without this class, a process with very many hooks
 * would reach the system's limit on open files. It could then connect neither to hooks nor to Kafka.
 *
 * The idle connections are linked to each other instead of being kept in an array. The comment on `HookPool`
 * says why.
 */
export class OpenConnections {
  readonly #options: OpenConnectionsOptions
  /** The connection that has been idle for the longest time. */
  #first: Connection | undefined
  #last: Connection | undefined
  #idle = 0
  #inUse = 0

  constructor(options: OpenConnectionsOptions) {
    this.#options = options
  }

  /** The number of connections that have an open socket and no request. */
  get idle(): number {
    return this.#idle
  }

  /** Called when a connection is opened, and when a request takes a free connection (after `removeIdle`). */
  taken(): void {
    this.#inUse++
    this.#keepLimits()
  }

  /** Called when a connection no longer has a request, because it has become free or was closed. */
  freed(): void {
    this.#inUse--
  }

  addIdle(connection: Connection, owner: IdleOwner): void {
    connection.idleOwner = owner
    connection.idleBefore = this.#last
    if (this.#last === undefined) this.#first = connection
    else this.#last.idleAfter = connection
    this.#last = connection
    this.#idle++
    this.#keepLimits()
  }

  /** Removes a connection from the idle ones. Does nothing if the connection isn't idle. */
  removeIdle(connection: Connection): void {
    if (connection.idleOwner === undefined) return
    const { idleBefore: before, idleAfter: after } = connection
    if (before === undefined) this.#first = after
    else before.idleAfter = after
    if (after === undefined) this.#last = before
    else after.idleBefore = before
    connection.idleOwner = undefined
    connection.idleBefore = undefined
    connection.idleAfter = undefined
    this.#idle--
  }

  /** Closes the connection that has been idle for the longest time, if there is an idle one. */
  closeFirst(): void {
    const first = this.#first
    if (first === undefined) return
    first.idleOwner?.closeIdle(first)
    this.#options.onClosed?.()
  }

  #keepLimits(): void {
    const { maxIdle, maxOpen } = this.#options
    const most = Math.max(0, Math.min(maxIdle, maxOpen - this.#inUse))
    while (this.#idle > most) this.closeFirst()
  }
}

/** The limits of a sender that may open any number of connections. */
export const unlimited: OpenConnectionsOptions = {
  maxIdle: Number.POSITIVE_INFINITY,
  maxOpen: Number.POSITIVE_INFINITY,
}
