import { comma, copyBytes } from './json-bytes.ts'

/** How many numbers are stored for an object, and for a member. */
const perObject = 4
const perMember = 2

/**
 * The objects of a JSON text whose members get another order, and that order. All of them are put in order at
 * once, after the end of the text. Otherwise, each of many levels would move again what is nested in it.
 */
export class OtherOrder {
  /**
   * For each object: where its members begin and end in the text, the number of its first member, and how
   * many objects within it are here too. An object comes after those within it.
   */
  #objects = new Int32Array(64 * perObject)
  #objectCount = 0
  /** For each member, in the order that the members get: where it begins and ends in the text. */
  #members = new Int32Array(256 * perMember)
  #memberCount = 0
  #from: Buffer = nothing
  #to: Buffer = nothing
  /** The text is written from its end to its beginning. The next part ends here. */
  #end = 0

  reset(): void {
    this.#objectCount = this.#memberCount = 0
  }

  get objects(): number {
    return this.#objectCount
  }

  /** Adds a member to the object that is added next. */
  addMember(start: number, end: number): void {
    const at = perMember * this.#memberCount++
    if (at === this.#members.length) this.#members = larger(this.#members)
    this.#members[at] = start
    this.#members[at + 1] = end
  }

  /**
   * Adds an object whose members begin at `start` and end at `end`. `count`: the number of its members.
   * `objectsBefore`: the number of objects when it began.
   */
  addObject(start: number, end: number, count: number, objectsBefore: number): void {
    const at = perObject * this.#objectCount
    if (at === this.#objects.length) this.#objects = larger(this.#objects)
    this.#objects[at] = start
    this.#objects[at + 1] = end
    this.#objects[at + 2] = this.#memberCount - count
    this.#objects[at + 3] = this.#objectCount++ - objectsBefore
  }

  /** Returns the first `length` bytes of the text, put in order. Use them before the next call. */
  ordered(text: Buffer, length: number): Buffer {
    if (this.#to.length < length) this.#to = Buffer.allocUnsafeSlow(2 * length)
    this.#from = text
    this.#end = length
    this.#write(0, length, 0, this.#objectCount)
    this.#from = nothing
    return this.#to.subarray(this.#end, length)
  }

  /** Writes a part of the text. The objects within it are among those from `first` to one below `limit`. */
  #write(start: number, end: number, first: number, limit: number): void {
    let until = end
    for (
      let object = this.#lastUpTo(end, first, limit);
      object >= first;
      object -= 1 + this.#within(object)
    ) {
      const objectStart = this.#objects[perObject * object] ?? 0
      if (objectStart < start) break
      this.#copy(this.#objects[perObject * object + 1] ?? 0, until)
      this.#writeObject(object)
      until = objectStart
    }
    this.#copy(start, until)
  }

  #writeObject(object: number): void {
    const first = this.#objects[perObject * object + 2] ?? 0
    const isLast = object + 1 === this.#objectCount
    const limit = isLast ? this.#memberCount : (this.#objects[perObject * (object + 1) + 2] ?? 0)
    for (let member = limit - 1; member >= first; member--) {
      const start = this.#members[perMember * member] ?? 0
      const end = this.#members[perMember * member + 1] ?? 0
      this.#write(start, end, object - this.#within(object), object)
      if (member > first) this.#to[--this.#end] = comma
    }
  }

  #within(object: number): number {
    return this.#objects[perObject * object + 3] ?? 0
  }

  /** Returns the last object from `first` to one below `limit` that ends at `end` or before. */
  #lastUpTo(end: number, first: number, limit: number): number {
    let [low, high] = [first, limit]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#objects[perObject * middle + 1] ?? 0) <= end) low = middle + 1
      else high = middle
    }
    return low - 1
  }

  #copy(start: number, end: number): void {
    this.#end -= end - start
    copyBytes(this.#from, start, end, this.#to, this.#end)
  }
}

const nothing = Buffer.alloc(0)

function larger(array: Int32Array): Int32Array<ArrayBuffer> {
  const grown = new Int32Array(2 * array.length)
  grown.set(array)
  return grown
}
