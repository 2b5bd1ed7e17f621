import { hashOf, isAt, openBrace, quote } from './json/json-bytes.ts'

/** The value for the number of an unknown field, and for the place of a field that an object doesn't have. */
export const absent = -1

const firstOfNull = 0x6e
/** How many numbers are stored for a field: the places of its key, its value and its end. */
const perField = 3
/** How many numbers are stored for a member of a nested field: the hash of its key, its start and its end. */
const perMember = 3

/**
 * The places of known fields in objects that `scanObject` has scanned, as indexes into the bytes. One array
 * has the places of many objects. `begin` and `select` set the object that all other methods use.
 */
export class FieldPlaces {
  readonly #byHash: ReadonlyMap<number, { readonly field: number; readonly name: Buffer }>
  readonly #nested: number
  readonly #perObject: number
  #bytes: Buffer = nothing
  /**
   * For each object: its number of keys, the places of its fields, and the ranges of its nested fields in
   * `#members`.
   */
  #notes: Int32Array<ArrayBuffer>
  #base = 0
  #count = 0
  #members = new Int32Array(32 * perMember)
  #memberCount = 0

  /** A number that changes each time `reset` forgets all objects. */
  generation = 0

  /**
   * `names`: the names of the known fields. A field's index in this list is its number. For the first
   * `nested` fields, the places of their members are stored too.
   */
  constructor(names: readonly string[], nested: number) {
    this.#byHash = new Map(names.map((name, field) => [hashOf(name), { field, name: Buffer.from(name) }]))
    this.#nested = nested
    this.#perObject = 1 + perField * names.length + 2 * nested
    this.#notes = new Int32Array(this.#perObject)
  }

  /** Forgets all objects. `bytes`: the bytes of the objects that are scanned next. */
  reset(bytes: Buffer = nothing): void {
    this.generation++
    this.#bytes = bytes
    this.#count = 0
    this.#memberCount = 0
  }

  /** Adds the next object, and selects it. None of its fields has a place yet. */
  begin(): void {
    this.select(this.#count++)
    if (this.#base + this.#perObject > this.#notes.length) this.#notes = grown(this.#notes)
    this.beginAgain()
  }

  /** Forgets the places of the selected object, which must be the last one. */
  beginAgain(): void {
    this.#notes.fill(absent, this.#base, this.#base + this.#perObject)
  }

  /** Selects an object by its number. */
  select(object: number): void {
    this.#base = object * this.#perObject
  }

  /**
   * Returns the number of the field whose name is in the bytes from `start` to `end`. `hash` is the hash of
   * the name. Returns `absent` if the field isn't known.
   */
  fieldOf(hash: number, start: number, end: number): number {
    const known = this.#byHash.get(hash)
    return known !== undefined && isAt(this.#bytes, start, end, known.name) ? known.field : absent
  }

  isNested(field: number): boolean {
    return field !== absent && field < this.#nested
  }

  /**
   * Stores the places of a field: the first quotation mark of its key, the start of its value, and the place
   * after its value.
   */
  note(field: number, keyStart: number, start: number, end: number): void {
    if (field === absent) return
    const at = this.#base + 1 + perField * field
    this.#notes[at] = keyStart
    this.#notes[at + 1] = start
    this.#notes[at + 2] = end
  }

  /** Begins the list of the members of a nested field. */
  beginMembers(field: number): void {
    this.#notes[this.#membersAt + 2 * field] = this.#memberCount
  }

  noteMember(hash: number, start: number, end: number): void {
    const at = perMember * this.#memberCount++
    if (at === this.#members.length) this.#members = grown(this.#members)
    this.#members[at] = hash
    this.#members[at + 1] = start
    this.#members[at + 2] = end
  }

  endMembers(field: number): void {
    this.#notes[this.#membersAt + 2 * field + 1] = this.#memberCount
  }

  // The members of a nested field are numbered from `firstMember` to one below `endOfMembers`. The functions
  // `…OfMember` return the stored values of one member.
  firstMember(field: number): number {
    return this.#notes[this.#membersAt + 2 * field] ?? absent
  }

  endOfMembers(field: number): number {
    return this.#notes[this.#membersAt + 2 * field + 1] ?? absent
  }

  hashOfMember(member: number): number {
    return this.#members[perMember * member] ?? 0
  }

  startOfMember(member: number): number {
    return this.#members[perMember * member + 1] ?? absent
  }

  endOfMember(member: number): number {
    return this.#members[perMember * member + 2] ?? absent
  }

  get #membersAt(): number {
    return this.#base + this.#perObject - 2 * this.#nested
  }

  /** The number of keys of the object and of all objects in it. */
  get keys(): number {
    return this.#notes[this.#base] ?? absent
  }

  set keys(count: number) {
    this.#notes[this.#base] = count
  }

  has(field: number): boolean {
    return this.keyStartOf(field) !== absent
  }

  // The three following functions return the places of a field. Call `startOf` and `endOf` only for a field
  // that the object has.
  keyStartOf(field: number): number {
    return this.#notes[this.#base + 1 + perField * field] ?? absent
  }

  startOf(field: number): number {
    return this.#notes[this.#base + 2 + perField * field] ?? absent
  }

  endOf(field: number): number {
    return this.#notes[this.#base + 3 + perField * field] ?? absent
  }

  /**
   * Returns the first byte of a field's value, which identifies the kind of the value. The object must have
   * the field.
   */
  firstByte(field: number): number | undefined {
    return this.#bytes[this.startOf(field)]
  }

  /** Returns true if the object has the field, and the bytes of its value are these. */
  isSpelled(field: number, value: Buffer): boolean {
    return this.has(field) && isAt(this.#bytes, this.startOf(field), this.endOf(field), value)
  }

  /** If a field's value is a string without escapes, returns it. Otherwise returns `undefined`. */
  textOf(field: number): string | undefined {
    if (!this.has(field) || this.firstByte(field) !== quote) return undefined
    const text = this.#bytes.toString('utf8', this.startOf(field) + 1, this.endOf(field) - 1)
    return text.includes('\\') ? undefined : text
  }

  /** Returns a field's value. Returns `undefined` if the object doesn't have the field. */
  valueOf(field: number): unknown {
    if (!this.has(field)) return undefined
    return JSON.parse(this.#bytes.toString('utf8', this.startOf(field), this.endOf(field)))
  }

  /** Returns true if the field is a string that isn't empty. */
  isFilled(field: number): boolean {
    return (
      this.has(field) && this.firstByte(field) === quote && this.#bytes[this.startOf(field) + 1] !== quote
    )
  }

  isNull(field: number): boolean {
    return this.has(field) && this.firstByte(field) === firstOfNull
  }

  isObject(field: number): boolean {
    return this.has(field) && this.firstByte(field) === openBrace
  }

  /** Returns true if the field is absent, null or a string. */
  mayBeText(field: number): boolean {
    return !this.has(field) || this.firstByte(field) === quote || this.isNull(field)
  }

  /** Returns true if the field is absent, null or an object. */
  mayBeObject(field: number): boolean {
    return !this.has(field) || this.isObject(field) || this.isNull(field)
  }
}

const nothing = Buffer.alloc(0)

function grown(array: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(2 * array.length)
  larger.set(array)
  return larger
}
