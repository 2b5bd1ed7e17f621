import { isUtf8 } from 'node:buffer'
import type { FramedReason } from './frame.ts'

/** The fault of a value, thrown from within it. `createAvroReader` catches it. */
export class AvroFault extends Error {
  readonly reason: FramedReason

  constructor(reason: FramedReason, message: string) {
    super(message)
    this.reason = reason
  }
}

/**
 * The number of items that a value may have in addition to one item for each of its bytes. Without a limit, a
 * value could claim any number of items that take no bytes, such as nulls.
 */
const spareItems = 1_000
/**
 * Limit on the fields of a value: `spareFields`, and `fieldsPerByte` for each byte. Records take no bytes of
 * their own. If a record holds another record twice, which holds another twice, and so on, there are soon
 * more fields than memory has room for.
 */
const spareFields = 10_000
const fieldsPerByte = 8

/**
 * Reads the primitives of Avro's binary encoding from the beginning of a value to its end. Reading always
 * ends, whatever the bytes are. Each item of an array or a map, and each field, is first counted against a
 * limit, and then read. The limit depends on the value's length. Throws an AvroFault.
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

  /** The number of bytes that were not read yet. */
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

  /** Reads a long: zigzag, seven bits a byte. Returns a bigint if a number can't hold the value exactly. */
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
    // Bytes that can't be decoded become U+FFFD. But the text may also contain that character itself.
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
      // After a negative number, the size of the block follows, for readers that want to skip the block.
      this.integer()
    }
    this.#itemsLeft -= length
    if (this.#itemsLeft < 0) throw mismatch('an array or a map claims more items than there are bytes')
    return length
  }

  /** Counts the fields of a record. Call it before they are read. */
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

  /** Moves past `length` bytes, and returns the place before them. */
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
