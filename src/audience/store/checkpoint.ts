/**
 * Tracks the offset of `memberships` up to which a unit's store is complete. The unit reads the records of
 * `memberships` in order. But Kafka acknowledges a write of the unit before the unit reads the written
 * record. If the offsets of the unit's own writes are consecutive, no other member has written a record
 * between them. In that case, the position passes these offsets although the unit hasn't read them yet.
 */
export class Checkpoint {
  /** The offset below which the unit knows all records. */
  #position: number
  /** Offsets of the unit's own acknowledged writes that are above `#position`. */
  readonly #above = new Set<number>()
  /**
   * Offsets that `position` must not pass until the pending rewrites are done. A rewrite writes the entry of
   * a key again. Each value is the number of rewrites that must be done before `position` may pass the
   * offset.
   */
  readonly #blocked = new Map<number, number>()
  #leaderEpoch: number

  constructor(position: number, leaderEpoch = -1) {
    this.#position = position
    this.#leaderEpoch = leaderEpoch
  }

  /** The highest epoch of a leader that has appended a record which was read. -1 if it isn't known. */
  get leaderEpoch(): number {
    return this.#leaderEpoch
  }

  /** Remembers that a record was read which a leader of this epoch has appended. */
  readEpoch(leaderEpoch: number | undefined): void {
    if (leaderEpoch !== undefined && leaderEpoch > this.#leaderEpoch) this.#leaderEpoch = leaderEpoch
  }

  /**
   * The position that a write to the store may record. The unit knows all records below this offset, and
   * needn't write any of their keys again.
   */
  get position(): number {
    let position = this.#position
    for (const offset of this.#blocked.keys()) position = Math.min(position, offset)
    return position
  }

  /**
   * The offset below which the unit knows all records. The keys of some of these records may still have to be
   * written again.
   */
  get known(): number {
    return this.#position
  }

  /** Remembers that the record at the offset was written by this unit and acknowledged by Kafka. */
  wrote(offset: number): void {
    if (offset < this.#position) return
    // At a gap between the unit's own writes, the position stays until the record in the gap is read. If the
    // set is full, the offset isn't added, and the position passes the offset when the record at this offset
    // is read.
    if (this.#above.size < maxAbove) this.#above.add(offset)
    this.#advance()
  }

  /**
   * Remembers that the record at the offset was read. All records before this record have been read earlier.
   */
  read(offset: number): void {
    if (offset < this.#position) return
    this.#forget(offset)
    this.#position = offset + 1
    this.#advance()
  }

  /**
   * Keeps `position` at or below the offset until `unblock` is called, because the key of the record at the
   * offset must be written again first.
   */
  block(offset: number): void {
    this.#blocked.set(offset, (this.#blocked.get(offset) ?? 0) + 1)
  }

  unblock(offset: number): void {
    const count = (this.#blocked.get(offset) ?? 0) - 1
    if (count > 0) this.#blocked.set(offset, count)
    else this.#blocked.delete(offset)
  }

  /**
   * Removes the offsets up to `offset` from `#above`. To save time, it loops over the smaller set: the
   * offsets from the position to `offset`, or the offsets in `#above`.
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
