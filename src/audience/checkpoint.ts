/**
 * Up to where `memberships` is wholly in the store. It is read in order, but what was written here is known
 * before it is read: as long as the offsets of those records follow one another, nobody else has written in
 * between.
 */
export class Checkpoint {
  /** All records below are known. */
  #position: number
  /** Known above the position, by their own acknowledgement. */
  readonly #above = new Set<number>()
  /** Known, and something has still to be written on account of them. How often each is blocked. */
  readonly #blocked = new Map<number, number>()

  constructor(position: number) {
    this.#position = position
  }

  /** What a store that is written now may say. */
  get position(): number {
    let position = this.#position
    for (const offset of this.#blocked.keys()) position = Math.min(position, offset)
    return position
  }

  /** All records below are known, though something may have still to be written on their account. */
  get known(): number {
    return this.#position
  }

  /** A record was written here. */
  wrote(offset: number): void {
    if (offset < this.#position) return
    // A gap stays until what fills it is read. What is forgotten meanwhile is read too.
    if (this.#above.size < maxAbove) this.#above.add(offset)
    this.#advance()
  }

  /** The record was read, after all before it. */
  read(offset: number): void {
    if (offset < this.#position) return
    this.#forget(offset)
    this.#position = offset + 1
    this.#advance()
  }

  /** The store may not pass a record before what it asks for is done. */
  block(offset: number): void {
    this.#blocked.set(offset, (this.#blocked.get(offset) ?? 0) + 1)
  }

  unblock(offset: number): void {
    const count = (this.#blocked.get(offset) ?? 0) - 1
    if (count > 0) this.#blocked.set(offset, count)
    else this.#blocked.delete(offset)
  }

  /** What is known up to `offset`, whichever is less: as many offsets as there are to it, or as are known. */
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
