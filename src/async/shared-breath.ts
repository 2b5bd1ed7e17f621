import { Fifo } from './fifo.ts'

/**
 * Splits several works of one kind into pieces, like `Breath`. In each turn of the event loop, all of them
 * together do no more than one piece.
 */
export class SharedBreath {
  readonly #pieceMs: number
  readonly #waiting = new Fifo<() => void>()
  /** When the piece of this turn began. */
  #sinceMs = 0
  /** Set if a piece has begun in this turn. */
  #nextTurn: NodeJS.Immediate | undefined

  /** `pieceMs`: the longest piece, in milliseconds, without its last step. */
  constructor(pieceMs: number) {
    this.#pieceMs = pieceMs
  }

  /**
   * Call this right before each step, and wait for what it returns. `undefined`: do the step at once, without
   * an `await`, or all works begin their next step together.
   */
  take(): Promise<void> | undefined {
    if (this.#nextTurn === undefined) this.#beginPiece()
    if (performance.now() - this.#sinceMs < this.#pieceMs) return undefined
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  #beginPiece(): void {
    this.#sinceMs = performance.now()
    this.#nextTurn = setImmediate(() => {
      this.#nextTurn = undefined
      if (this.#waiting.length === 0) return
      this.#beginPiece()
      void this.#goOn()
    })
  }

  /** Lets those that wait do a step each, until the piece is over. */
  async #goOn(): Promise<void> {
    while (performance.now() - this.#sinceMs < this.#pieceMs) {
      const next = this.#waiting.shift()
      if (next === undefined) return
      next()
      // It does its step before this goes on.
      await Promise.resolve()
    }
  }
}
