/** The end of a partition's log, as far as the owner of the partition knows it. */
export class LogEnd {
  #offset = 0
  /** An offset and a time: all records up to the offset were in the log at that time. */
  #seen = { offset: -1, atMs: 0 }
  #asked = { offset: 0, atMs: 0 }
  #takenMs = 0

  /** The offset after the last record. */
  get offset(): number {
    return this.#offset
  }

  /** Notes that the log has records up to `offset` at least. */
  reachesTo(offset: number): void {
    this.#offset = Math.max(this.#offset, offset)
  }

  /** Notes where the log ended, by the broker's answer to a request that was sent at `askedAtMs`. */
  reported(offset: number, askedAtMs: number): void {
    this.reachesTo(offset)
    this.#asked = { offset, atMs: askedAtMs }
  }

  /**
   * Returns a time, in epoch milliseconds: every record that the log had at that time was taken. It is the
   * latest such time that is known; 0 while none is known. `top`: all records before this offset were taken;
   * `undefined` if there is no such offset.
   */
  takenMs(top: number | undefined): number {
    if (top !== undefined && top >= this.#asked.offset) this.#takenMs = this.#asked.atMs
    return this.#takenMs
  }

  /**
   * Returns the time since which the record at `offset` is known to be in the log, in epoch milliseconds.
   * Notes the same time for all other records that are in the log now.
   */
  thereSinceMs(offset: number, nowMs: number): number {
    if (offset > this.#seen.offset) this.#seen = { offset: Math.max(offset, this.#offset - 1), atMs: nowMs }
    return this.#seen.atMs
  }
}
