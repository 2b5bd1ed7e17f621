import { randomFillSync } from 'node:crypto'
import { Chaskey } from './chaskey.ts'

/**
 * Limit on an id, in UTF-16 code units. Segment's limit is 100 characters, and a character may be two code
 * units.
 */
const maxUnits = 200
const headWords = 3
const headBytes = headWords * Int32Array.BYTES_PER_ELEMENT
const blockBytes = 16

/**
 * Computes fingerprints of 128 bits for the ids of messages. Only this process knows the key of the
 * fingerprints. So nobody can deliberately send two ids with the same fingerprint, or an id with the
 * fingerprint of another source's message.
 */
export class Fingerprint {
  /** The fingerprint that the last call of `take` computed. The next call overwrites it. */
  readonly words = new Int32Array(4)
  readonly #chaskey = new Chaskey(randomFillSync(new Int32Array(4)))
  readonly #input: Int32Array
  /**
   * The part of `#input` that has the id. Three words come before it: two numbers and the length of the id.
   * `#bytes` shows this part as bytes, and `#units` as code units. Both are views of the same memory.
   */
  readonly #bytes: Uint8Array
  readonly #units: Uint16Array

  constructor() {
    // The buffer has room for the rest of the last block, and for another block, because `#clearFrom` may
    // clear words after the last block.
    const buffer = new ArrayBuffer(headBytes + 2 * maxUnits + 2 * blockBytes)
    this.#input = new Int32Array(buffer)
    this.#bytes = new Uint8Array(buffer, headBytes)
    this.#units = new Uint16Array(buffer, headBytes)
  }

  /**
   * Computes one fingerprint from an id and two numbers, and writes it to `words`. Returns false for an id
   * over the limit. Such an id would have to be cut, and two cut ids could be the same.
   */
  take(one: number, other: number, id: string): boolean {
    const { length } = id
    if (length > maxUnits) return false
    const size = this.#write(id)
    const input = this.#input
    input[0] = one
    input[1] = other
    // The length is in code units. For an id with two bytes for each code unit, the length is half the size
    // in bytes. So no id with one byte for each code unit has the same input.
    input[2] = length
    this.#chaskey.mac(input, headBytes + size, this.words)
    return true
  }

  /**
   * Writes the id into the input and returns its size in bytes. If every code unit of the id fits into one
   * byte, each code unit takes one byte. Otherwise each code unit takes two bytes.
   */
  #write(id: string): number {
    const { length } = id
    const bytes = this.#bytes
    this.#clearFrom(length)
    let all = 0
    for (let i = 0; i < length; i++) {
      const unit = id.charCodeAt(i)
      all |= unit
      bytes[i] = unit
    }
    if (all < 0x100) return length
    const units = this.#units
    this.#clearFrom(2 * length)
    for (let i = 0; i < length; i++) units[i] = id.charCodeAt(i)
    return 2 * length
  }

  /**
   * Clears four words of the input, so that no bytes of an earlier id follow the next id. An id of `size`
   * bytes ends in the first of these words. The four words include the rest of the input's last block.
   */
  #clearFrom(size: number): void {
    const end = (headBytes + size) >>> 2
    const input = this.#input
    input[end] = 0
    input[end + 1] = 0
    input[end + 2] = 0
    input[end + 3] = 0
  }
}
