import { isDigit } from './canonical-number.ts'
import { hashFactor, hashSeed } from './json-bytes.ts'
import { OtherOrder } from './other-order.ts'

/** How many numbers are stored for a member: the place of its key, the end of its key, and the key's hash. */
const perMember = 3
/** Up to this number of members, each key is compared with each other one. */
const mostCompared = 8
/** The largest key that JavaScript treats as an index. Indexes come first, in the order of their numbers. */
const mostIndex = 2 ** 32 - 2
const mostIndexDigits = 10
const leastTable = 32
/**
 * More members than an object of the largest message has. An index and a slot together are a whole number.
 */
const mostSlots = 2 ** 21
const zero = 0x30
const none = -1

/**
 * The members of the open objects of a JSON text that is being written to a buffer. Each key must be in the
 * spelling of JSON.stringify. Finds the order of JSON.parse, where each key occurs only once.
 */
export class MemberOrder {
  #members = new Int32Array(256 * perMember)
  #count = 0
  /** For each open container: the number of its first member. `none` for a list. */
  #firsts = new Int32Array(64)
  /** For each open object: its last index so far. `none` before the first member, Infinity after a name. */
  #lastIndexes = new Float64Array(64)
  /** For each open object: 1 if an index came after a name, or after an index that isn't smaller. */
  #unsorted = new Uint8Array(64)
  /** For each open container: how many objects were out of order before it. */
  #objectsBefore = new Int32Array(64)
  #open = 0
  /** The members of the innermost object that JSON.parse keeps, in its order of names. */
  #chosen = new Int32Array(64)
  #chosenCount = 0
  #order = new Float64Array(64)
  readonly #other = new OtherOrder()
  /** A hash table of places in `#chosen`, counted from 1. */
  #table = new Int32Array(leastTable)

  reset(): void {
    this.#count = 0
    this.#open = 0
    this.#other.reset()
  }

  /** True if the innermost open container is an object. */
  get isInObject(): boolean {
    return this.#firsts[this.#open - 1] !== none
  }

  open(isObject: boolean): void {
    const at = this.#open++
    if (at === this.#firsts.length) this.#growOpen()
    this.#firsts[at] = isObject ? this.#count : none
    this.#lastIndexes[at] = none
    this.#unsorted[at] = 0
    this.#objectsBefore[at] = this.#other.objects
  }

  close(): void {
    const first = this.#firsts[--this.#open] ?? none
    if (first !== none) this.#count = first
  }

  /**
   * Adds a member to the innermost object. Its key is between `start` and `end`, with its quotation marks.
   * `hash`: the hash of the key without them.
   */
  add(to: Buffer, start: number, end: number, hash: number): void {
    const at = perMember * this.#count++
    if (at === this.#members.length) this.#members = larger(this.#members)
    this.#members[at] = start
    this.#members[at + 1] = end
    this.#members[at + 2] = hash
    const innermost = this.#open - 1
    const index = isDigit(to[start + 1]) ? indexIn(to, start + 1, end - 1) : none
    if (index === none) this.#lastIndexes[innermost] = Infinity
    else if (index <= (this.#lastIndexes[innermost] ?? none)) this.#unsorted[innermost] = 1
    else this.#lastIndexes[innermost] = index
  }

  /**
   * Finds the order of the members of the innermost object, which are in `to` from `start` to `end`. They
   * stay where they are until `ordered` is called.
   */
  findOrder(to: Buffer, start: number, end: number): void {
    const innermost = this.#open - 1
    const count = this.#count - (this.#firsts[innermost] ?? 0)
    this.#choose(to, count)
    const isUnsorted = this.#unsorted[innermost] === 1
    if (!isUnsorted && this.#chosenCount === count) return
    if (isUnsorted) this.#sortIndexes(to)
    for (let slot = 0; slot < this.#chosenCount; slot++) {
      const member = this.#chosen[slot] ?? 0
      const isLast = member + 1 === this.#count
      this.#other.addMember(this.#startOf(member), isLast ? end : this.#startOf(member + 1) - 1)
    }
    this.#other.addObject(start, end, this.#chosenCount, this.#objectsBefore[innermost] ?? 0)
  }

  /** True if the members of an object aren't in order, or if a key repeats. */
  get isOutOfOrder(): boolean {
    return this.#other.objects > 0
  }

  /** Returns the first `length` bytes of `to` with all members in order. Use them before the next call. */
  ordered(to: Buffer, length: number): Buffer {
    return this.#other.ordered(to, length)
  }

  /** Moves the chosen members whose keys are indexes to the front, in the order of the indexes. */
  #sortIndexes(to: Buffer): void {
    const count = this.#chosenCount
    // An index and its slot are one number, so that no objects have to be made and compared.
    if (this.#order.length < count) this.#order = new Float64Array(2 * count)
    const order = this.#order
    for (let slot = 0; slot < count; slot++) {
      const member = this.#chosen[slot] ?? 0
      const index = indexIn(to, this.#startOf(member) + 1, this.#keyEndOf(member) - 1)
      order[slot] = (index === none ? mostIndex + 1 : index) * mostSlots + slot
    }
    sortFirst(order, count)
    for (let slot = 0; slot < count; slot++) {
      order[slot] = this.#chosen[(order[slot] ?? 0) % mostSlots] ?? 0
    }
    for (let slot = 0; slot < count; slot++) this.#chosen[slot] = order[slot] ?? 0
  }

  /**
   * Chooses the members that JSON.parse keeps: of members with the same key it keeps the last one, in the
   * place of the first one.
   */
  #choose(to: Buffer, count: number): void {
    this.#chosenCount = 0
    if (this.#chosen.length < count) this.#chosen = new Int32Array(2 * count)
    if (count > mostCompared) {
      this.#chooseByTable(to, count)
      return
    }
    for (let member = this.#count - count; member < this.#count; member++) {
      let slot = 0
      while (slot < this.#chosenCount && !this.#isSameKey(to, member, this.#chosen[slot] ?? 0)) slot++
      this.#put(slot, member)
    }
  }

  #put(slot: number, member: number): void {
    this.#chosen[slot] = member
    if (slot === this.#chosenCount) this.#chosenCount++
  }

  #chooseByTable(to: Buffer, count: number): void {
    let size = leastTable
    while (size < 2 * count) size *= 2
    if (size > this.#table.length) this.#table = new Int32Array(size)
    else this.#table.fill(0, 0, size)
    const table = this.#table
    let probesLeft = 8 * count
    for (let member = this.#count - count; member < this.#count; member++) {
      const hash = this.#hashOf(member)
      let at = (hash ^ (hash >>> 15)) & (size - 1)
      let slot = this.#chosenCount
      for (let taken = table[at] ?? 0; taken !== 0; taken = table[at] ?? 0) {
        if (this.#isSameKey(to, member, this.#chosen[taken - 1] ?? 0)) {
          slot = taken - 1
          break
        }
        // Somebody may choose keys with equal hashes. The hashes of V8's strings can't be foreseen.
        if (--probesLeft === 0) {
          this.#chooseByName(to, count)
          return
        }
        at = (at + 1) & (size - 1)
      }
      table[at] = slot + 1
      this.#put(slot, member)
    }
  }

  #chooseByName(to: Buffer, count: number): void {
    const slots = new Map<string, number>()
    this.#chosenCount = 0
    for (let member = this.#count - count; member < this.#count; member++) {
      const name = to.toString('latin1', this.#startOf(member), this.#keyEndOf(member))
      const slot = slots.get(name) ?? this.#chosenCount
      slots.set(name, slot)
      this.#put(slot, member)
    }
  }

  #startOf(member: number): number {
    return this.#members[perMember * member] ?? 0
  }

  #keyEndOf(member: number): number {
    return this.#members[perMember * member + 1] ?? 0
  }

  #hashOf(member: number): number {
    return this.#members[perMember * member + 2] ?? 0
  }

  #isSameKey(to: Buffer, one: number, other: number): boolean {
    if (this.#hashOf(one) !== this.#hashOf(other)) return false
    const start = this.#startOf(one)
    const otherStart = this.#startOf(other)
    const length = this.#keyEndOf(one) - start
    if (length !== this.#keyEndOf(other) - otherStart) return false
    for (let at = 0; at < length; at++) if (to[start + at] !== to[otherStart + at]) return false
    return true
  }

  #growOpen(): void {
    this.#firsts = larger(this.#firsts)
    this.#lastIndexes = Float64Array.from({ length: 2 * this.#open }, (_, at) => this.#lastIndexes[at] ?? 0)
    this.#unsorted = Uint8Array.from({ length: 2 * this.#open }, (_, at) => this.#unsorted[at] ?? 0)
    this.#objectsBefore = larger(this.#objectsBefore)
  }
}

/** Up to this number of numbers, inserting them one by one takes less time than the sorting of a view. */
const mostInserted = 16

function sortFirst(numbers: Float64Array, count: number): void {
  if (count > mostInserted) {
    numbers.subarray(0, count).sort()
    return
  }
  for (let next = 1; next < count; next++) {
    const inserted = numbers[next] ?? 0
    let at = next
    for (; at > 0 && (numbers[at - 1] ?? 0) > inserted; at--) numbers[at] = numbers[at - 1] ?? 0
    numbers[at] = inserted
  }
}

export function hashBetween(bytes: Buffer, start: number, end: number): number {
  let hash = hashSeed
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), hashFactor)
  return hash
}

/** Returns the index that a key between `start` and `end` spells, or `none` if the key is a name. */
function indexIn(to: Buffer, start: number, end: number): number {
  const length = end - start
  if (length === 0 || length > mostIndexDigits || (to[start] === zero && length > 1)) return none
  let index = 0
  for (let at = start; at < end; at++) {
    const byte = to[at]
    if (byte === undefined || !isDigit(byte)) return none
    index = 10 * index + (byte - zero)
  }
  return index <= mostIndex ? index : none
}

function larger(array: Int32Array): Int32Array<ArrayBuffer> {
  const grown = new Int32Array(2 * array.length)
  grown.set(array)
  return grown
}
