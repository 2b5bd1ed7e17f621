/** Kafka can't be connected or logged in to, and the message names the setting to look at. */
export class LoginError extends Error {
  override name = 'LoginError'
}

/**
 * The last that kept a client from connecting or logging in, in words that name the setting to look at. Only
 * the sockets and the logins learn of it: what kafkajs throws in the end says that it has tried often enough.
 */
export class ReportedTroubles {
  readonly #tell: (message: string) => void
  #last: string | undefined
  #toldMs = -Infinity

  /** `tell`: for the log; each trouble once, the same one no more than once a minute. */
  constructor(tell: (message: string) => void) {
    this.#tell = tell
  }

  get last(): string | undefined {
    return this.#last
  }

  take(message: string): void {
    const isNew = message !== this.#last
    this.#last = message
    if (!isNew && performance.now() - this.#toldMs < repeatedAfterMs) return
    this.#toldMs = performance.now()
    this.#tell(message)
  }
}

const repeatedAfterMs = 60_000
