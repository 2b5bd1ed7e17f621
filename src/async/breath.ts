import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Pace } from './pace.ts'

/** Splits a long work into pieces. Between two pieces, the event loop does what else waits. */
export class Breath {
  readonly #pieceMs: number
  readonly #pace: Pace | undefined
  #sinceMs = performance.now()

  /**
   * `pieceMs`: the longest piece of the work, in milliseconds, without its last step. `pace`: how long the
   * work rests after each piece. `undefined`: for a turn of the event loop.
   */
  constructor(pieceMs = 5, pace?: Pace) {
    this.#pieceMs = pieceMs
    this.#pace = pace
  }

  /** Call this after each step. It waits for a turn of the event loop once a piece is over. */
  async take(): Promise<void> {
    const tookMs = performance.now() - this.#sinceMs
    if (tookMs < this.#pieceMs) return
    await (this.#pace === undefined ? nextTurn() : this.#pace.rest(tookMs))
    this.#sinceMs = performance.now()
  }
}
