/** The end of a partition's log, as far as the owner of the partition knows it. */
export class LogEnd {
  #offset = 0
  /**
   * An offset and a time in epoch milliseconds. All records up to this offset were in the log at this time.
   */
  #seen = { offset: -1, atMs: 0 }
  #asked = { offset: 0, atMs: 0 }
  #takenMs = 0

  /** The offset after the last record. */
  get offset(): number {
    return this.#offset
  }

  /** Notes that the log contains at least the records before `offset`. */
  reachesTo(offset: number): void {
    this.#offset = Math.max(this.#offset, offset)
  }

  /**
   * Notes the end of the log that the broker has reported. The request was sent at `askedAtMs`, in epoch
   * milliseconds.
   */
  reported(offset: number, askedAtMs: number): void {
    this.reachesTo(offset)
    this.#asked = { offset, atMs: askedAtMs }
  }

  /**
   * Returns the latest time, in epoch milliseconds, for which this is known: all records that the log had at
   * the time have been taken. Returns 0 while no such time is known. `top` is the offset after the last
   * record that was taken. `top` is `undefined` if no record was taken yet.
   */
  takenMs(top: number | undefined): number {
    if (top !== undefined && top >= this.#asked.offset) this.#takenMs = this.#asked.atMs
    return this.#takenMs
  }

  /**
   * Returns when this object first knew that the log has the record at `offset`, in epoch milliseconds. If
   * the record is new to this object, all other new records in the log get the same time.
   */
  thereSinceMs(offset: number, nowMs: number): number {
    if (offset > this.#seen.offset) this.#seen = { offset: Math.max(offset, this.#offset - 1), atMs: nowMs }
    return this.#seen.atMs
  }
}
