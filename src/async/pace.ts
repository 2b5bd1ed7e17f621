import { setTimeout as delay } from 'node:timers/promises'

/** A rest is never longer than this many times the longest piece, because a busy machine stops pieces too. */
const mostPieces = 2

/**
 * Bounds the share of its time that a process spends on some works together. A work is done in pieces, and
 * rests after each one. So it takes longer, and leaves the processor to what can't wait. A work of one piece
 * never rests.
 */
export class Pace {
  readonly #share: number
  readonly #pieceMs: number
  #untilMs = 0

  /** `share`: of the time, from 0 to 1. `pieceMs`: the usual length of a piece, in milliseconds. */
  constructor({ share, pieceMs }: { readonly share: number; readonly pieceMs: number }) {
    this.#share = share
    this.#pieceMs = pieceMs
  }

  /** Waits until the next piece may begin. `tookMs`: the length of the last one, in milliseconds. */
  async rest(tookMs: number): Promise<void> {
    const nowMs = performance.now()
    const countedMs = Math.min(tookMs, mostPieces * this.#pieceMs)
    this.#untilMs = Math.max(nowMs, this.#untilMs) + countedMs * (1 / this.#share - 1)
    await delay(this.#untilMs - nowMs)
  }
}
