import { isUtf8 } from 'node:buffer'
import type { FramedReason } from './frame.ts'

/** A fault of a value, which is thrown while the value is read. `createAvroReader` catches it. */
export class AvroFault extends Error {
  readonly reason: FramedReason

  constructor(reason: FramedReason, message: string) {
    super(message)
    this.reason = reason
  }
}

/**
 * The number of items that a value may have in addition to one item for each of its bytes. Without this
 * limit, a value of a few bytes could announce any number of items that take no bytes, such as nulls.
 */
const spareItems = 1_000
/**
 * The limit on the fields of a value is `spareFields` plus `fieldsPerByte` for each byte of the value.
 * Without this limit, a value of a few bytes could have more fields than fit into memory. For example, a
 * record may contain a second record twice, the second a third twice, and so on. Only the fields of the last
 * record take bytes, and these may be nulls, which take none.
 */
const spareFields = 10_000
const fieldsPerByte = 8

/**
 * Reads the primitives of Avro's binary encoding from the beginning of a value to its end. Each item of an
 * array or a map, and each field, is counted against a limit before it is read. The limit depends on the
 * value's length. So the reading always ends, whatever the bytes are. The methods throw an AvroFault if the
 * value is faulty.
 */
export class Cursor {
  readonly #bytes: Buffer
  #at = 0
  #itemsLeft: number
  #fieldsLeft: number

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    this.#itemsLeft = bytes.length + spareItems
    this.#fieldsLeft = bytes.length * fieldsPerByte + spareFields
  }

  /** The number of bytes that haven't been read yet. */
  get left(): number {
    return this.#bytes.length - this.#at
  }

  boolean(): boolean {
    const byte = this.#byte()
    if (byte > 1) throw mismatch('a boolean is neither 0 nor 1')
    return byte === 1
  }

  int(): number {
    const value = this.long()
    if (typeof value === 'bigint' || value !== (value | 0)) throw mismatch('an int has more than 32 bits')
    return value
  }

  /** Reads a long (zigzag varint). Returns a bigint if a number can't hold the value exactly. */
  long(): number | bigint {
    let low = 0
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.#byte()
      low |= (byte & 0x7f) << shift
      if (byte < 0x80) return (low >>> 1) ^ -(low & 1)
    }
    // The sum is exact up to 49 bits, which is enough for a time in milliseconds.
    let middle = low
    for (let unit = 2 ** 28; unit < 2 ** 49; unit *= 128) {
      const byte = this.#byte()
      middle += (byte & 0x7f) * unit
      if (byte < 0x80) return middle % 2 === 0 ? middle / 2 : -(middle + 1) / 2
    }
    let wide = BigInt(middle)
    for (let shift = 49n; shift < 70n; shift += 7n) {
      const byte = this.#byte()
      wide |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return narrow(wide)
    }
    throw mismatch('a number has more than 64 bits')
  }

  /** Reads a long that a number holds exactly. */
  integer(): number {
    const value = this.long()
    if (typeof value === 'bigint') throw mismatch('a length or an index is out of range')
    return value
  }

  float(): number {
    return finite(this.#bytes.readFloatLE(this.#skip(4)))
  }

  double(): number {
    return finite(this.#bytes.readDoubleLE(this.#skip(8)))
  }

  /** Reads `length` bytes, without a copy. */
  fixed(length: number): Buffer {
    const start = this.#skip(length)
    return this.#bytes.subarray(start, this.#at)
  }

  bytes(): Buffer {
    return this.fixed(this.integer())
  }

  text(): string {
    const length = this.integer()
    const start = this.#skip(length)
    const text = this.#bytes.toString('utf8', start, this.#at)
    // Bytes that aren't UTF-8 become U+FFFD. But a correct text may contain this character too.
    if (text.includes('\ufffd') && !isUtf8(this.#bytes.subarray(start, this.#at))) {
      throw new AvroFault('not_utf8', 'a string is not UTF-8')
    }
    return text
  }

  /**
   * Reads the number of items in the next block of an array or a map. Returns 0 at the end of the array or
   * map.
   */
  blockLength(): number {
    let length = this.integer()
    if (length < 0) {
      length = -length
      // A negative number of items is followed by the size of the block in bytes, for readers that skip the
      // block.
      this.integer()
    }
    this.#itemsLeft -= length
    if (this.#itemsLeft < 0) throw mismatch('an array or a map claims more items than there are bytes')
    return length
  }

  /** Counts the fields of a record against the limit. Call this before the fields are read. */
  countFields(count: number): void {
    this.#fieldsLeft -= count
    if (this.#fieldsLeft < 0) throw mismatch('its records have too many fields for its length')
  }

  #byte(): number {
    const byte = this.#bytes[this.#at]
    if (byte === undefined) throw tooShort()
    this.#at++
    return byte
  }

  /** Moves past `length` bytes, and returns the place of the first of these bytes. */
  #skip(length: number): number {
    const start = this.#at
    if (length < 0 || length > this.left) throw tooShort()
    this.#at += length
    return start
  }
}

function narrow(zigzag: bigint): number | bigint {
  if (zigzag > 0xffff_ffff_ffff_ffffn) throw mismatch('a number has more than 64 bits')
  const value = (zigzag >> 1n) ^ -(zigzag & 1n)
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}

function finite(value: number): number {
  if (Number.isFinite(value)) return value
  throw new AvroFault('number_out_of_range', 'a number is infinite, or none (NaN), which JSON does not have')
}

function tooShort(): AvroFault {
  return mismatch('it ends too soon')
}

export function mismatch(message: string): AvroFault {
  return new AvroFault('schema_mismatch', message)
}
