/** Where the log of a partition ends, as far as its owner knows. */
export class LogEnd {
  #offset = 0
  /** All up to this offset were there at that time. */
  #seen = { offset: -1, atMs: 0 }
  #asked = { offset: 0, atMs: 0 }
  #takenMs = 0

  /** One past the last record. */
  get offset(): number {
    return this.#offset
  }

  /** The log has records up to `offset` at least. */
  reachesTo(offset: number): void {
    this.#offset = Math.max(this.#offset, offset)
  }

  /** The broker has said, when it was asked at that time, where the log ends. */
  told(offset: number, askedAtMs: number): void {
    this.reachesTo(offset)
    this.#asked = { offset, atMs: askedAtMs }
  }

  /**
   * When all that was there was last known to have been taken, in epoch milliseconds; 0 while unknown. `top`:
   * all before it is taken now; `undefined`: that isn't known.
   */
  takenMs(top: number | undefined): number {
    if (top !== undefined && top >= this.#asked.offset) this.#takenMs = this.#asked.atMs
    return this.#takenMs
  }

  /** Since when a record is known to be there, in epoch milliseconds: with it all that were there then. */
  thereSinceMs(offset: number, nowMs: number): number {
    if (offset > this.#seen.offset) this.#seen = { offset: Math.max(offset, this.#offset - 1), atMs: nowMs }
    return this.#seen.atMs
  }
}
