import type { Connection } from './connection.ts'

/** The pool of an idle connection. */
export type IdleOwner = {
  /** Closes one of the pool's idle connections: the one that has been idle for the longest time. */
  closeOldestIdle(): void
}

/**
 * The idle connections of all pools, in the order in which they became idle. Each takes an open file and
 * about 10 KB of memory, or more with TLS. So if there are more than `max`, the oldest is closed. Without
 * this limit, a process with more hooks than the system allows open files could not connect to any hook.
 *
 * The connections are linked to each other, for the reason that `HookPool` tells.
 */
export class IdleConnections {
  readonly #max: number
  readonly #onClosed: () => void
  #oldest: Connection | undefined
  #newest: Connection | undefined
  #count = 0

  /** `onClosed` is called for each connection that is closed because of the limit. */
  constructor(max: number, onClosed: () => void = () => undefined) {
    this.#max = max
    this.#onClosed = onClosed
  }

  get count(): number {
    return this.#count
  }

  /** Adds a connection that has just become idle. May close the oldest one. */
  add(connection: Connection, owner: IdleOwner): void {
    connection.idleOwner = owner
    connection.idleBefore = this.#newest
    if (this.#newest === undefined) this.#oldest = connection
    else this.#newest.idleAfter = connection
    this.#newest = connection
    this.#count++
    if (this.#count <= this.#max) return
    this.#oldest?.idleOwner?.closeOldestIdle()
    this.#onClosed()
  }

  /** Removes a connection that is about to be used or closed. Does nothing if the connection isn't idle. */
  remove(connection: Connection): void {
    if (connection.idleOwner === undefined) return
    const { idleBefore: before, idleAfter: after } = connection
    if (before === undefined) this.#oldest = after
    else before.idleAfter = after
    if (after === undefined) this.#newest = before
    else after.idleBefore = before
    connection.idleOwner = undefined
    connection.idleBefore = undefined
    connection.idleAfter = undefined
    this.#count--
  }
}
