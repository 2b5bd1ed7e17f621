import { randomFillSync } from 'node:crypto'
import { Chaskey } from './chaskey.ts'

/** Limit on an id in code units: Segment's 100 characters, which may be two code units each. */
const maxUnits = 200
const headWords = 3
const headBytes = headWords * Int32Array.BYTES_PER_ELEMENT
const blockBytes = 16

/**
 * A fingerprint of 128 bits for a message's id. Only this process knows the key. So nobody can send two ids
 * with the same fingerprint, or an id with the fingerprint of another source's message.
 */
export class Fingerprint {
  /** The fingerprint of the last `take`. The next `take` overwrites it. */
  readonly words = new Int32Array(4)
  readonly #chaskey = new Chaskey(randomFillSync(new Int32Array(4)))
  readonly #input: Int32Array
  /** The input after the head, as bytes (`#bytes`) and as code units (`#units`). */
  readonly #bytes: Uint8Array
  readonly #units: Uint16Array

  constructor() {
    // The buffer has room for the end of the last block, and for another block that is cleared with it.
    const buffer = new ArrayBuffer(headBytes + 2 * maxUnits + 2 * blockBytes)
    this.#input = new Int32Array(buffer)
    this.#bytes = new Uint8Array(buffer, headBytes)
    this.#units = new Uint16Array(buffer, headBytes)
  }

  /**
   * Hashes an id and two numbers into `words`. Returns false for an id over the limit, because it would have
   * to be cut, and two cut ids could look the same.
   */
  take(one: number, other: number, id: string): boolean {
    const { length } = id
    if (length > maxUnits) return false
    const size = this.#write(id)
    const input = this.#input
    input[0] = one
    input[1] = other
    // The length counts code units. For an id of wide characters it is half the size in bytes, so no id of
    // narrow characters has the same input.
    input[2] = length
    this.#chaskey.mac(input, headBytes + size, this.words)
    return true
  }

  /**
   * Writes the id after the head. Each code unit takes one byte if all fit, else two. Returns the size in
   * bytes.
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

  /** Clears the words from the word in which an id of this size ends to the end of the block. */
  #clearFrom(size: number): void {
    const end = (headBytes + size) >>> 2
    const input = this.#input
    input[end] = 0
    input[end + 1] = 0
    input[end + 2] = 0
    input[end + 3] = 0
  }
}
