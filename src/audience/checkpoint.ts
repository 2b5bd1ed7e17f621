/**
 * Tracks the offset of `memberships` up to which the store is complete. The unit reads the log in order, but
 * learns of its own writes by their acknowledgement, before it reads them. While the offsets of the unit's
 * own writes are consecutive, no other member has written in between.
 */
export class Checkpoint {
  /** The offset below which all records are known. */
  #position: number
  /** Offsets above the position at which this unit's own writes were acknowledged. */
  readonly #above = new Set<number>()
  /**
   * Offsets that the checkpoint may not pass until a pending rewrite is done, with the number of rewrites
   * that each one waits for.
   */
  readonly #blocked = new Map<number, number>()

  constructor(position: number) {
    this.#position = position
  }

  /**
   * The offset that a write to the store may record as its position: no rewrite is pending for any record
   * below it.
   */
  get position(): number {
    let position = this.#position
    for (const offset of this.#blocked.keys()) position = Math.min(position, offset)
    return position
  }

  /** The offset below which all records are known, even if a rewrite is still pending for some of them. */
  get known(): number {
    return this.#position
  }

  /** Notes that this unit's own write at the offset was acknowledged. */
  wrote(offset: number): void {
    if (offset < this.#position) return
    // A gap stays until the record at its offset is read. An offset that doesn't fit into the set is passed
    // when its record is read.
    if (this.#above.size < maxAbove) this.#above.add(offset)
    this.#advance()
  }

  /** Notes that the record at the offset was read. All records before it were read earlier. */
  read(offset: number): void {
    if (offset < this.#position) return
    this.#forget(offset)
    this.#position = offset + 1
    this.#advance()
  }

  /** Keeps the position at or below the offset until the rewrite that the record makes necessary is done. */
  block(offset: number): void {
    this.#blocked.set(offset, (this.#blocked.get(offset) ?? 0) + 1)
  }

  unblock(offset: number): void {
    const count = (this.#blocked.get(offset) ?? 0) - 1
    if (count > 0) this.#blocked.set(offset, count)
    else this.#blocked.delete(offset)
  }

  /**
   * Drops known offsets up to `offset`. Loops over the offsets from the position to `offset`, or over the
   * known offsets, whichever are fewer.
   */
  #forget(offset: number): void {
    if (offset - this.#position < this.#above.size) {
      for (let known = this.#position; known <= offset; known++) this.#above.delete(known)
    } else {
      for (const known of this.#above) if (known <= offset) this.#above.delete(known)
    }
  }

  #advance(): void {
    if (this.#above.size === 0) return
    while (this.#above.delete(this.#position)) this.#position++
  }
}

const maxAbove = 10_000
