import process from 'node:process'

/** The reason to end after a signal to this process: SIGINT (Ctrl-C), SIGTERM or SIGHUP. */
class Interrupted extends Error {
  override name = 'Interrupted'
}

/**
 * Time after the first signal in which further signals are ignored. Under `npm run`, one Ctrl-C may arrive
 * twice: from the terminal and from npm. A signal after this time ends the process at once.
 */
const impatientAfterMs = 1_000

/**
 * The list of all started parts, with a function for each that stops it. Create only one `Lifetime` in a
 * process, because it handles the signals of the process.
 */
export class Lifetime {
  readonly #stops: { what: string; stop: () => Promise<void> }[] = []
  readonly #ending = new AbortController()
  #interruptedAtMs = 0

  constructor() {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => this.#interrupt())
  }

  /** Aborts as soon as the demo can't go on. Its `reason` says why. */
  get signal(): AbortSignal {
    return this.#ending.signal
  }

  get isInterrupted(): boolean {
    return this.signal.reason instanceof Interrupted
  }

  /** Ends the demo, because a part that it needs has failed. */
  fail(error: Error): void {
    this.#ending.abort(error)
  }

  /**
   * Registers a function that stops a part. `stop` calls these functions in reverse order, however the demo
   * ends. `what` names the part in an error message.
   */
  onStop(what: string, stop: () => Promise<void>): void {
    this.#stops.push({ what, stop })
  }

  /** Resolves with the result of `work`. Rejects with the reason if the demo ends before. */
  async orEnd<T>(work: Promise<T>): Promise<T> {
    const { signal } = this
    signal.throwIfAborted()
    const ended = Promise.withResolvers<never>()
    const end = (): void => ended.reject(signal.reason)
    signal.addEventListener('abort', end)
    try {
      return await Promise.race([work, ended.promise])
    } finally {
      signal.removeEventListener('abort', end)
    }
  }

  /** Waits for all of `works`. If one of them fails, aborts `signal`, so that the others end too. */
  async together(works: readonly Promise<unknown>[]): Promise<void> {
    try {
      await Promise.all(works)
    } catch (error) {
      this.#ending.abort(error)
      await Promise.allSettled(works)
      throw this.signal.reason
    }
  }

  /** Stops all parts in reverse order. Returns an error message for each part that failed to stop. */
  async stop(): Promise<string[]> {
    const faults: string[] = []
    for (let last = this.#stops.pop(); last !== undefined; last = this.#stops.pop()) {
      try {
        await last.stop()
      } catch (error) {
        faults.push(`${last.what}: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
    return faults
  }

  #interrupt(): void {
    const isSecond = this.#interruptedAtMs > 0
    if (isSecond && performance.now() - this.#interruptedAtMs < impatientAfterMs) return
    // All processes that the demo has started end together with this process.
    if (isSecond) process.exit(130)
    this.#interruptedAtMs = performance.now()
    this.#ending.abort(new Interrupted('interrupted'))
  }
}
