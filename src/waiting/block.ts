/** The number of offsets that a block covers. */
export const blockSize = 4_096

const wordBits = 32
const words = blockSize / wordBits

/**
 * What is known of the records at the offsets of one block of the log: whose each record is (`code`), which
 * records are taken out of the queue, and which are done. Consecutive records with the same code form a run,
 * so a block that belongs to one destination takes few bytes, and a block in which the destinations change
 * with each record takes 6 bytes a record.
 *
 * Places are offsets minus the first offset of the block.
 */
export class Block {
  #starts = new Uint16Array(4)
  #codes = new Uint32Array(4)
  #runs = 0
  #length = 0
  #isSealed = false
  #taken: Uint32Array | undefined
  #done: Uint32Array | undefined
  #doneCount = 0

  /** The number of places that are filled. */
  get length(): number {
    return this.#length
  }

  /** The number of filled places whose records are not done. */
  get undone(): number {
    return this.#length - this.#doneCount
  }

  /** The approximate memory that the block takes, in bytes. */
  get bytes(): number {
    const bitmaps = (this.#taken === undefined ? 0 : 4 * words) + (this.#done === undefined ? 0 : 4 * words)
    return this.#starts.byteLength + this.#codes.byteLength + bitmaps
  }

  /** The runs, as pairs of a code and the number of records. */
  get runs(): readonly (readonly [code: number, length: number])[] {
    return Array.from({ length: this.#runs }, (_, run) => [
      this.#codes[run] ?? 0,
      this.#endOf(run) - (this.#starts[run] ?? 0),
    ])
  }

  /** Fills the next `count` places with records of `code`. */
  push(code: number, count: number): void {
    if (count <= 0) return
    if (this.#runs === 0 || this.#codes[this.#runs - 1] !== code) {
      if (this.#runs === this.#codes.length) this.#grow()
      this.#starts[this.#runs] = this.#length
      this.#codes[this.#runs] = code
      this.#runs++
    }
    this.#length += count
    if (this.#length === blockSize && !this.#isSealed) this.#seal()
  }

  codeAt(place: number): number {
    return this.#codes[this.#runAt(place)] ?? 0
  }

  /** Returns the first place from `from` on with a record of `code` that is neither taken nor done, or -1. */
  nextOf(code: number, from: number): number {
    for (let run = this.#runAt(from); run < this.#runs; run++) {
      if (this.#codes[run] !== code) continue
      const end = this.#endOf(run)
      for (let place = Math.max(from, this.#starts[run] ?? 0); place < end; place++)
        if (!has(this.#taken, place) && !has(this.#done, place)) return place
    }
    return -1
  }

  take(place: number): void {
    this.#taken ??= new Uint32Array(words)
    add(this.#taken, place)
  }

  putBack(place: number): void {
    remove(this.#taken, place)
  }

  isTaken(place: number): boolean {
    return has(this.#taken, place)
  }

  isDone(place: number): boolean {
    return has(this.#done, place)
  }

  /** Marks a filled place as done. Returns false if it was done before. */
  finish(place: number): boolean {
    if (has(this.#done, place)) return false
    this.#done ??= new Uint32Array(words)
    add(this.#done, place)
    remove(this.#taken, place)
    this.#doneCount++
    return true
  }

  /** Returns the first filled place that isn't done, or `length` if all are done. */
  firstUndone(): number {
    if (this.#done === undefined) return 0
    for (let word = 0; word < words; word++) {
      const free = ~(this.#done[word] ?? 0)
      if (free !== 0) return Math.min(this.#length, word * wordBits + 31 - Math.clz32(free & -free))
    }
    return this.#length
  }

  /**
   * Returns the done places as a bitmap of 512 bytes, the lowest place in the lowest bit of the first byte.
   */
  doneBits(): Buffer {
    const bits = Buffer.alloc(words * 4)
    for (let word = 0; word < words; word++) bits.writeUInt32LE(this.#done?.[word] ?? 0, word * 4)
    return bits
  }

  /** Returns the run that has `place`, or the last run. */
  #runAt(place: number): number {
    let low = 0
    let high = this.#runs - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((this.#starts[middle] ?? 0) <= place) low = middle
      else high = middle - 1
    }
    return low
  }

  #endOf(run: number): number {
    return run + 1 < this.#runs ? (this.#starts[run + 1] ?? 0) : this.#length
  }

  #grow(): void {
    const starts = new Uint16Array(this.#starts.length * 2)
    const codes = new Uint32Array(this.#codes.length * 2)
    starts.set(this.#starts)
    codes.set(this.#codes)
    this.#starts = starts
    this.#codes = codes
  }

  /** Frees the room for further runs, because a full block gets none. */
  #seal(): void {
    this.#isSealed = true
    this.#starts = this.#starts.slice(0, this.#runs)
    this.#codes = this.#codes.slice(0, this.#runs)
  }
}

/** Yields the places that a bitmap of `doneBits` names. */
export function* placesOf(bits: Buffer): Generator<number> {
  for (let byte = 0; byte < Math.min(bits.length, blockSize / 8); byte++) {
    const value = bits[byte] ?? 0
    for (let bit = 0; value >> bit !== 0; bit++) if ((value >> bit) & 1) yield byte * 8 + bit
  }
}

function has(bits: Uint32Array | undefined, place: number): boolean {
  return bits !== undefined && ((bits[place >> 5] ?? 0) & (1 << (place & 31))) !== 0
}

function add(bits: Uint32Array, place: number): void {
  bits[place >> 5] = (bits[place >> 5] ?? 0) | (1 << (place & 31))
}

function remove(bits: Uint32Array | undefined, place: number): void {
  if (bits !== undefined) bits[place >> 5] = (bits[place >> 5] ?? 0) & ~(1 << (place & 31))
}
