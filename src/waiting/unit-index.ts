import { Block, blockSize } from './block.ts'

/** The waiting records of one lane class of one destination in one unit. */
type Line = {
  /** No record before this offset is neither taken nor done. */
  from: number
  /** The number of records that are neither taken nor done. */
  untaken: number
  /** The number of records that are not done, taken ones included. */
  undone: number
}

/**
 * The index of one partition of `waiting`: whose each record from `head` to `end` is, and whether the record
 * is taken or done. It has no holes: a record is indexed only when all records before it are.
 *
 * A record is `taken` while the worker makes its delivery, and `done` when nothing more has to be done for
 * it.
 */
export class UnitIndex {
  readonly #blocks = new Map<number, Block>()
  readonly #lines = new Map<number, Line>()
  #end: number
  #head: number
  #undone = 0
  #untaken = 0

  /** @param start the first offset that may have a waiting record */
  constructor(start: number) {
    this.#head = start
    this.#end = start
    const place = start % blockSize
    if (place > 0) this.#fill(Math.floor(start / blockSize), place)
  }

  /** The first offset that isn't done; `end` if all are done. */
  get head(): number {
    return this.#head
  }

  /** The offset after the last indexed record. */
  get end(): number {
    return this.#end
  }

  /** The number of records that are not done. */
  get undone(): number {
    return this.#undone
  }

  /** The number of records that are neither taken nor done. */
  get untaken(): number {
    return this.#untaken
  }

  /** The codes with a record that is neither taken nor done. */
  *codes(): Generator<number> {
    for (const [code, { untaken }] of this.#lines) if (untaken > 0) yield code
  }

  /** The codes with a record that isn't done, taken ones included. */
  undoneCodes(): Iterable<number> {
    return this.#lines.keys()
  }

  untakenOf(code: number): number {
    return this.#lines.get(code)?.untaken ?? 0
  }

  /** The number of records of a code that aren't done, taken ones included. */
  undoneOf(code: number): number {
    return this.#lines.get(code)?.undone ?? 0
  }

  /** The approximate memory of the blocks, in bytes. */
  get bytes(): number {
    let bytes = 0
    for (const block of this.#blocks.values()) bytes += block.bytes
    return bytes
  }

  /** Adds `count` records of `code` at the end. */
  push(code: number, count = 1): void {
    let line = this.#lines.get(code)
    if (line === undefined) {
      line = { from: this.#end, untaken: 0, undone: 0 }
      this.#lines.set(code, line)
    }
    if (line.untaken === 0) line.from = this.#end
    line.untaken += count
    line.undone += count
    this.#undone += count
    this.#untaken += count
    for (let left = count; left > 0;) {
      const part = Math.min(left, blockSize - (this.#end % blockSize))
      this.#blockAt(this.#end).push(code, part)
      this.#end += part
      left -= part
    }
  }

  /** Passes over `count` offsets at the end that have no record to deliver. */
  skip(count: number): void {
    const isEmpty = this.#undone === 0
    for (let left = count; left > 0;) {
      const part = Math.min(left, blockSize - (this.#end % blockSize))
      const block = this.#blockAt(this.#end)
      const from = block.length
      block.push(0, part)
      for (let place = from; place < from + part; place++) block.finish(place)
      this.#end += part
      left -= part
    }
    if (isEmpty) this.#advance()
  }

  /**
   * Takes the first record of `code` that is neither taken nor done, and returns its offset; -1 if none is.
   */
  take(code: number): number {
    const line = this.#lines.get(code)
    const offset = this.firstOf(code)
    if (line === undefined || offset < 0) return -1
    this.#blocks.get(Math.floor(offset / blockSize))?.take(offset % blockSize)
    line.untaken--
    this.#untaken--
    line.from = offset + 1
    return offset
  }

  /**
   * Returns the offset of the first record of `code` that is neither taken nor done; -1 if there is none.
   */
  firstOf(code: number): number {
    const line = this.#lines.get(code)
    if (line === undefined || line.untaken === 0) return -1
    let number = Math.floor(line.from / blockSize)
    let from = line.from % blockSize
    for (; number * blockSize < this.#end; number++, from = 0) {
      const place = this.#blocks.get(number)?.nextOf(code, from) ?? -1
      if (place < 0) continue
      line.from = number * blockSize + place
      return line.from
    }
    throw new Error(`the index lost a record of a queue: code ${code} has ${line.untaken} waiting records`)
  }

  /** Takes the record at an offset, and returns its code; -1 if it is taken or done. */
  takeAt(offset: number): number {
    const block = this.#blocks.get(Math.floor(offset / blockSize))
    const place = offset % blockSize
    if (block === undefined || offset < this.#head || offset >= this.#end) return -1
    if (block.isTaken(place) || block.isDone(place)) return -1
    const code = block.codeAt(place)
    const line = this.#lines.get(code)
    if (line === undefined) return -1
    block.take(place)
    line.untaken--
    this.#untaken--
    return code
  }

  /** Puts back a taken record, because its delivery wasn't made. */
  putBack(offset: number): void {
    const block = this.#blocks.get(Math.floor(offset / blockSize))
    if (block === undefined) return
    const place = offset % blockSize
    const line = this.#lines.get(block.codeAt(place))
    block.putBack(place)
    if (line === undefined) return
    line.from = line.untaken === 0 ? offset : Math.min(line.from, offset)
    line.untaken++
    this.#untaken++
  }

  finishTaken(offset: number): void {
    this.#finish(offset, true)
  }

  /** Finishes a record that isn't taken, for example because a mark of an earlier owner says so. */
  finish(offset: number): void {
    this.#finish(offset, false)
  }

  /** Finishes a record that waits. Returns false if the record is taken. */
  finishWaiting(offset: number): boolean {
    const isTaken = this.#blocks.get(Math.floor(offset / blockSize))?.isTaken(offset % blockSize) ?? false
    if (!isTaken) this.#finish(offset, false)
    return !isTaken
  }

  isDone(offset: number): boolean {
    if (offset < this.#head) return true
    return this.#blocks.get(Math.floor(offset / blockSize))?.isDone(offset % blockSize) ?? false
  }

  block(number: number): Block | undefined {
    return this.#blocks.get(number)
  }

  #finish(offset: number, wasTaken: boolean): void {
    if (offset < this.#head || offset >= this.#end) return
    const block = this.#blocks.get(Math.floor(offset / blockSize))
    const place = offset % blockSize
    if (block === undefined || !block.finish(place)) return
    const code = block.codeAt(place)
    const line = this.#lines.get(code)
    this.#undone--
    if (!wasTaken) this.#untaken--
    if (line !== undefined) {
      line.undone--
      if (!wasTaken) line.untaken--
      if (line.undone === 0) this.#lines.delete(code)
    }
    if (offset === this.#head) this.#advance()
  }

  /** Moves `head` to the first offset that isn't done, and forgets the blocks before it. */
  #advance(): void {
    for (;;) {
      const number = Math.floor(this.#head / blockSize)
      const block = this.#blocks.get(number)
      if (block === undefined) break
      this.#head = Math.max(this.#head, number * blockSize + block.firstUndone())
      if (block.undone > 0 || block.length < blockSize) break
      this.#blocks.delete(number)
      this.#head = (number + 1) * blockSize
    }
    this.#head = Math.min(this.#head, this.#end)
  }

  #blockAt(offset: number): Block {
    const number = Math.floor(offset / blockSize)
    let block = this.#blocks.get(number)
    if (block === undefined) {
      block = new Block()
      this.#blocks.set(number, block)
    }
    return block
  }

  /** Fills the first places of a block whose records lie before the start. */
  #fill(number: number, places: number): void {
    const block = new Block()
    block.push(0, places)
    for (let place = 0; place < places; place++) block.finish(place)
    this.#blocks.set(number, block)
  }
}
