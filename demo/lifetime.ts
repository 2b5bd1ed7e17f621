import process from 'node:process'

/** The demo was told to end: Ctrl-C, or SIGTERM. */
class Interrupted extends Error {
  override name = 'Interrupted'
}

/**
 * Under `npm run` one Ctrl-C may arrive twice, from the terminal and from npm: a further signal counts only
 * after this long.
 */
const impatientAfterMs = 1_000

/** What was started, and how it ends. Made once: it takes over the signals of the process. */
export class Lifetime {
  readonly #stops: { what: string; stop: () => Promise<void> }[] = []
  readonly #ending = new AbortController()
  #interruptedAtMs = 0

  constructor() {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => this.#interrupt())
  }

  /** Aborted, with the reason, as soon as the demo can't go on. */
  get signal(): AbortSignal {
    return this.#ending.signal
  }

  get isInterrupted(): boolean {
    return this.signal.reason instanceof Interrupted
  }

  /** Ends the demo: something that it needs is gone. */
  fail(error: Error): void {
    this.#ending.abort(error)
  }

  /** Called in reverse order at the end, whatever that is. */
  onStop(what: string, stop: () => Promise<void>): void {
    this.#stops.push({ what, stop })
  }

  /** What `work` gives, or the reason why the demo ends before that. */
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

  /** Waits for all of `works`; when one of them fails, the others end too. */
  async together(works: readonly Promise<unknown>[]): Promise<void> {
    try {
      await Promise.all(works)
    } catch (error) {
      this.#ending.abort(error)
      await Promise.allSettled(works)
      throw this.signal.reason
    }
  }

  /** Stops everything, and gives back what did not stop as it should, in words. */
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
    // What was started as a process ends with this one.
    if (isSecond) process.exit(130)
    this.#interruptedAtMs = performance.now()
    this.#ending.abort(new Interrupted('interrupted'))
  }
}
