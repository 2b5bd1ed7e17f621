/** Reports that a client can't connect or log in to Kafka. The message names the setting to look at. */
export class LoginError extends Error {
  override name = 'LoginError'
}

/**
 * The last reason why a client could not connect or log in, as a text that names the setting to look at. Only
 * the code that opens sockets and logs in knows this reason. The final error of kafkajs says only that it has
 * tried often enough.
 */
export class ReportedTroubles {
  readonly #log: (message: string) => void
  #last: string | undefined
  /** What the addresses did that could not be used at the last attempt. */
  readonly #unreached = new Map<string, string>()
  /**
   * The time when each trouble was logged, by `performance.now`. All recent troubles are kept, because
   * several brokers may report different troubles by turns.
   */
  readonly #loggedMs = new Map<string, number>()

  /**
   * `log` writes a line of the log. A new trouble is logged at once. Each trouble is logged at most once a
   * minute.
   */
  constructor(log: (message: string) => void) {
    this.#log = log
  }

  get last(): string | undefined {
    return this.#last
  }

  /** What each address did that could not be used, in words. `undefined` if there is no such address. */
  get unreached(): string | undefined {
    if (this.#unreached.size === 0) return undefined
    return [...this.#unreached]
      .map(([address, reason]) => (reason.startsWith(address) ? reason : `${address}: ${reason}`))
      .join('; ')
  }

  /** Notes that an address of `kafka.brokers` could not be used, and why. */
  notReached(address: string, reason: string): void {
    this.#unreached.set(address, reason)
    this.#tell(`the address ${address} of kafka.brokers can not be used: ${reason}`)
  }

  /** Notes that an address of `kafka.brokers` has answered. */
  reached(address: string): void {
    this.#unreached.delete(address)
  }

  take(message: string): void {
    this.#last = message
    this.#tell(message)
  }

  #tell(message: string): void {
    const nowMs = performance.now()
    for (const [one, loggedMs] of this.#loggedMs)
      if (nowMs - loggedMs >= repeatedAfterMs) this.#loggedMs.delete(one)
    if (this.#loggedMs.has(message)) return
    this.#loggedMs.set(message, nowMs)
    this.#log(message)
  }
}

const repeatedAfterMs = 60_000
