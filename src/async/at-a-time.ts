import { untilAborted } from './until-aborted.ts'

/**
 * A limit on the number of works that run at the same time. Further works wait, in the order of their calls.
 */
export class AtATime {
  readonly #atATime: number
  readonly #queue: (() => void)[] = []
  #taken = 0

  constructor(atATime: number) {
    this.#atATime = atATime
  }

  /** Waits for room for one more work. Call `end` when the work has ended. Rejects when `signal` fires. */
  async take(signal: AbortSignal): Promise<void> {
    this.#taken++
    if (this.#taken <= this.#atATime) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#queue.push(resolve)
    try {
      await untilAborted(promise, signal)
    } catch (error) {
      const index = this.#queue.indexOf(resolve)
      if (index >= 0) this.#queue.splice(index, 1)
      else this.#queue.shift()?.()
      this.#taken--
      throw error
    }
  }

  end(): void {
    this.#taken--
    this.#queue.shift()?.()
  }
}
