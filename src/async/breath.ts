import { setImmediate as nextTurn } from 'node:timers/promises'

/** Splits a long work into pieces. Between two pieces, the event loop does what else waits. */
export class Breath {
  readonly #pieceMs: number
  #sinceMs = performance.now()

  /** `pieceMs`: the longest piece of the work, in milliseconds, without its last step. */
  constructor(pieceMs = 5) {
    this.#pieceMs = pieceMs
  }

  /** Call this after each step. It waits for a turn of the event loop once a piece is over. */
  async take(): Promise<void> {
    if (performance.now() - this.#sinceMs < this.#pieceMs) return
    await nextTurn()
    this.#sinceMs = performance.now()
  }
}
