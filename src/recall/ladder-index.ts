const blockSize = 512

/** Nothing waits at this offset: it was taken early, or has no record to deliver. */
const nothing = 1
const firstCode = 2

/** A number for each destination of which something waits, and how much waits. */
export class LadderCodes {
  readonly #codes = new Map<string, number>()
  readonly #ids: (string | undefined)[] = []
  readonly #counts: number[] = []
  readonly #free: number[] = []
  readonly #most: number
  #total = 0

  /** `most`: the most destinations that are counted at a time. */
  constructor(most: number) {
    this.#most = most
  }

  /** Counts one more. Returns the code, or `undefined` if there are too many destinations already. */
  add(destinationId: string): number | undefined {
    let place = this.#codes.get(destinationId)
    if (place === undefined) {
      if (this.#codes.size >= this.#most) return undefined
      place = this.#free.pop() ?? this.#ids.length
      this.#codes.set(destinationId, place)
      this.#ids[place] = destinationId
      this.#counts[place] = 0
    }
    this.#counts[place] = (this.#counts[place] ?? 0) + 1
    this.#total++
    return place + firstCode
  }

  /** Counts one less. */
  remove(code: number): void {
    const place = code - firstCode
    const left = (this.#counts[place] ?? 0) - 1
    this.#counts[place] = left
    this.#total--
    const id = this.#ids[place]
    if (left > 0 || id === undefined) return
    this.#codes.delete(id)
    this.#ids[place] = undefined
    this.#free.push(place)
  }

  countOf(destinationId: string): number {
    const place = this.#codes.get(destinationId)
    return place === undefined ? 0 : (this.#counts[place] ?? 0)
  }

  /** How many are counted in all. */
  get total(): number {
    return this.#total
  }

  ids(): Iterable<string> {
    return this.#codes.keys()
  }
}

/** The room that all indexes share. */
export type Room = { blocks: number }

/**
 * Whose each record of one partition of a retry topic is, from the first that waits to the end, as far as it
 * is known: four bytes a record.
 */
export class LadderIndex {
  readonly #codes: LadderCodes
  readonly #room: Room
  readonly #blocks = new Map<number, Uint32Array>()
  #from: number
  #end: number
  /** The number of offsets from `from` on that are known. */
  #known = 0
  /** All offsets from `from` to this one are known. */
  #knownTo: number

  constructor(from: number, codes: LadderCodes, room: Room) {
    this.#from = from
    this.#end = from
    this.#knownTo = from
    this.#codes = codes
    this.#room = room
  }

  /** The number of offsets from the first that waits to the end whose records aren't known. */
  get unknown(): number {
    return this.#end - this.#from - this.#known
  }

  /** Notes that the log has at least the records before `offset`. */
  reachesTo(offset: number): void {
    this.#end = Math.max(this.#end, offset)
  }

  /** Notes whose record is at an offset that isn't known. `undefined`: nothing waits there. */
  learn(offset: number, destinationId: string | undefined): void {
    this.reachesTo(offset + 1)
    if (offset < this.#from || this.#codeAt(offset) !== 0) return
    const block = this.#blockFor(offset)
    if (block === undefined) return
    const code = destinationId === undefined ? nothing : this.#codes.add(destinationId)
    if (code === undefined) return
    block[offset % blockSize] = code
    this.#known++
  }

  /** Notes that a record waits no more, because it was taken before others. */
  take(offset: number): void {
    const code = this.#codeAt(offset)
    if (offset < this.#from || code < firstCode) {
      this.learn(offset, undefined)
      return
    }
    this.#codes.remove(code)
    const block = this.#blocks.get(Math.floor(offset / blockSize))
    if (block !== undefined) block[offset % blockSize] = nothing
  }

  /** Notes that nothing before `offset` waits any more. */
  pass(offset: number): void {
    this.reachesTo(offset)
    while (this.#from < offset) {
      const number = Math.floor(this.#from / blockSize)
      const until = Math.min(offset, (number + 1) * blockSize)
      const block = this.#blocks.get(number)
      if (block !== undefined) this.#forget(block, this.#from % blockSize, until - number * blockSize)
      if (until % blockSize === 0) this.#drop(number)
      this.#from = until
    }
  }

  /** Forgets everything, because the partition belongs to another member now. */
  clear(): void {
    this.pass(this.#end)
    for (const number of this.#blocks.keys()) this.#drop(number)
  }

  /** Returns the first offsets in a row that aren't known. `undefined`: all are known. */
  nextUnknown(): { readonly from: number; readonly to: number } | undefined {
    if (this.unknown === 0) return undefined
    let from = Math.max(this.#from, this.#knownTo)
    while (from < this.#end && this.#codeAt(from) !== 0) from++
    this.#knownTo = from
    let to = from
    while (to < this.#end && this.#codeAt(to) === 0) to = this.#stepFrom(to)
    return from < this.#end ? { from, to: Math.min(to, this.#end) } : undefined
  }

  /** Of a block of which nothing is known, all is passed at once. */
  #stepFrom(offset: number): number {
    const number = Math.floor(offset / blockSize)
    return this.#blocks.has(number) ? offset + 1 : (number + 1) * blockSize
  }

  #codeAt(offset: number): number {
    return this.#blocks.get(Math.floor(offset / blockSize))?.[offset % blockSize] ?? 0
  }

  #forget(block: Uint32Array, from: number, to: number): void {
    for (let place = from; place < to; place++) {
      const code = block[place] ?? 0
      if (code === 0) continue
      this.#known--
      if (code >= firstCode) this.#codes.remove(code)
    }
  }

  #blockFor(offset: number): Uint32Array | undefined {
    const number = Math.floor(offset / blockSize)
    const known = this.#blocks.get(number)
    if (known !== undefined || this.#room.blocks <= 0) return known
    const block = new Uint32Array(blockSize)
    this.#blocks.set(number, block)
    this.#room.blocks--
    return block
  }

  #drop(number: number): void {
    if (this.#blocks.delete(number)) this.#room.blocks++
  }
}
