import { setImmediate as nextTurn } from 'node:timers/promises'

/** The longest piece of a work, in milliseconds. */
const pieceMs = 5

/** Splits a long work into pieces. Between two pieces, the event loop does what else waits. */
export class Breath {
  #sinceMs = performance.now()

  /** Call this after each step. It waits for a turn of the event loop once a piece is over. */
  async take(): Promise<void> {
    if (performance.now() - this.#sinceMs < pieceMs) return
    await nextTurn()
    this.#sinceMs = performance.now()
  }
}
