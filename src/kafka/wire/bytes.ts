// The primitive types of the Kafka protocol, big-endian. Flexible versions of a request (KIP-482) write texts
// and lists in their compact form, and end each structure with tagged fields.

const initialBytes = 256

/** Writes fields into a buffer that grows. */
export class ByteWriter {
  readonly #isFlexible: boolean
  #bytes: Buffer
  #at = 0

  constructor({ isFlexible = false }: { isFlexible?: boolean } = {}) {
    this.#isFlexible = isFlexible
    this.#bytes = Buffer.allocUnsafe(initialBytes)
  }

  /** Returns the bytes written so far. Nothing may be written afterwards. */
  finished(): Buffer {
    return this.#bytes.subarray(0, this.#at)
  }

  bool(value: boolean): this {
    return this.int8(value ? 1 : 0)
  }

  int8(value: number): this {
    this.#room(1)
    this.#at = this.#bytes.writeInt8(value, this.#at)
    return this
  }

  int16(value: number): this {
    this.#room(2)
    this.#at = this.#bytes.writeInt16BE(value, this.#at)
    return this
  }

  int32(value: number): this {
    this.#room(4)
    this.#at = this.#bytes.writeInt32BE(value, this.#at)
    return this
  }

  int64(value: number | bigint): this {
    this.#room(8)
    this.#at = this.#bytes.writeBigInt64BE(BigInt(value), this.#at)
    return this
  }

  uvarint(value: number): this {
    this.#room(5)
    let left = value >>> 0
    while (left >= 0x80) {
      this.#bytes[this.#at++] = (left & 0x7f) | 0x80
      left >>>= 7
    }
    this.#bytes[this.#at++] = left
    return this
  }

  /** Writes a text, or null where the protocol allows it. */
  string(text: string | null): this {
    const length = text === null ? -1 : Buffer.byteLength(text)
    if (this.#isFlexible) this.uvarint(length + 1)
    else this.int16(length)
    if (text === null) return this
    this.#room(length)
    this.#at += this.#bytes.write(text, this.#at)
    return this
  }

  /** Writes the number of bytes, and then the bytes. `data` may be null where the protocol allows it. */
  bytes(data: Uint8Array | null): this {
    const length = data === null ? -1 : data.length
    if (this.#isFlexible) this.uvarint(length + 1)
    else this.int32(length)
    return data === null ? this : this.raw(data)
  }

  /** Writes bytes without their length, for example the bytes of an id. */
  raw(data: Uint8Array): this {
    this.#room(data.length)
    this.#bytes.set(data, this.#at)
    this.#at += data.length
    return this
  }

  /**
   * Writes the number of items, and then the items. `items` may be null where the protocol allows it. If an
   * item is a structure, `write` has to end it with `tags`.
   */
  array<T>(items: readonly T[] | null, write: (item: T) => void): this {
    const length = items === null ? -1 : items.length
    if (this.#isFlexible) this.uvarint(length + 1)
    else this.int32(length)
    for (const item of items ?? []) write(item)
    return this
  }

  /** Ends a structure. In flexible versions, this writes that the structure has no tagged fields. */
  tags(): this {
    return this.#isFlexible ? this.uvarint(0) : this
  }

  #room(count: number): void {
    if (this.#at + count <= this.#bytes.length) return
    const grown = Buffer.allocUnsafe(Math.max(2 * this.#bytes.length, this.#at + count))
    this.#bytes.copy(grown, 0, 0, this.#at)
    this.#bytes = grown
  }
}

/** Reads the fields of a broker's answer. Throws a `RangeError` if the answer ends too soon. */
export class ByteReader {
  readonly bytes: Buffer
  readonly #isFlexible: boolean
  at: number

  constructor(bytes: Buffer, { isFlexible = false, at = 0 }: { isFlexible?: boolean; at?: number } = {}) {
    this.bytes = bytes
    this.#isFlexible = isFlexible
    this.at = at
  }

  bool(): boolean {
    return this.int8() !== 0
  }

  int8(): number {
    this.at += 1
    return this.bytes.readInt8(this.at - 1)
  }

  int16(): number {
    this.at += 2
    return this.bytes.readInt16BE(this.at - 2)
  }

  int32(): number {
    this.at += 4
    return this.bytes.readInt32BE(this.at - 4)
  }

  /**
   * Reads an integer of eight bytes. The result is exact up to 2^53. Offsets and milliseconds stay far below
   * this number.
   */
  int64(): number {
    return Number(this.bigint())
  }

  bigint(): bigint {
    this.at += 8
    return this.bytes.readBigInt64BE(this.at - 8)
  }

  uvarint(): number {
    let value = 0
    for (let shift = 0; shift <= 28; shift += 7) {
      const byte = this.bytes.readUInt8(this.at++)
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return value
    }
    throw new RangeError('a length of more than five bytes')
  }

  /** Reads a text. Returns the empty text for null. */
  string(): string {
    return this.nullableString() ?? ''
  }

  nullableString(): string | null {
    const length = this.#isFlexible ? this.uvarint() - 1 : this.int16()
    return length < 0 ? null : this.raw(length).toString('utf8')
  }

  /** Reads a length, and returns that many of the following bytes. Returns an empty slice for null. */
  data(): Buffer {
    const length = this.#isFlexible ? this.uvarint() - 1 : this.int32()
    return this.raw(Math.max(0, length))
  }

  raw(length: number): Buffer {
    const end = this.at + length
    if (length < 0 || end > this.bytes.length) throw new RangeError(`a field of ${length} bytes`)
    this.at = end
    return this.bytes.subarray(end - length, end)
  }

  /**
   * Reads the number of items, and then the items. Returns an empty list for null. If an item is a structure,
   * `read` has to end it with `tags`.
   */
  array<T>(read: () => T): T[] {
    const length = this.#isFlexible ? this.uvarint() - 1 : this.int32()
    const items: T[] = []
    for (let left = length; left > 0; left--) items.push(read())
    return items
  }

  /** Skips the tagged fields at the end of a structure, in versions that have them. */
  tags(): void {
    if (!this.#isFlexible) return
    for (let left = this.uvarint(); left > 0; left--) {
      this.uvarint()
      this.raw(this.uvarint())
    }
  }
}
