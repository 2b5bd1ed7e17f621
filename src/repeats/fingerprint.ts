import { randomFillSync } from 'node:crypto'
import { Chaskey } from './chaskey.ts'

/** Segment's 100 characters, which may be two code units each. */
const maxUnits = 200
const headWords = 3
const headBytes = headWords * Int32Array.BYTES_PER_ELEMENT
const blockBytes = 16

/**
 * 128 bits that stand for a message's id. The key is this process's own, so nobody can send two ids with the
 * same fingerprint, nor one with the fingerprint of another source's message.
 */
export class Fingerprint {
  /** Of the last `take`, until the next one. */
  readonly words = new Int32Array(4)
  readonly #chaskey = new Chaskey(randomFillSync(new Int32Array(4)))
  readonly #input: Int32Array
  /** Two views of what is behind the head. */
  readonly #bytes: Uint8Array
  readonly #units: Uint16Array

  constructor() {
    // Room for the end of the last block, and for as much again that is cleared with it.
    const buffer = new ArrayBuffer(headBytes + 2 * maxUnits + 2 * blockBytes)
    this.#input = new Int32Array(buffer)
    this.#bytes = new Uint8Array(buffer, headBytes)
    this.#units = new Uint16Array(buffer, headBytes)
  }

  /**
   * Makes `words` of an id and two numbers. False when the id is too long for that: what doesn't fit would be
   * left out, and other ids would look the same.
   */
  take(one: number, other: number, id: string): boolean {
    const { length } = id
    if (length > maxUnits) return false
    const size = this.#write(id)
    const input = this.#input
    input[0] = one
    input[1] = other
    // Half of its size for an id of wide characters: so no id of narrow ones looks like it.
    input[2] = length
    this.#chaskey.mac(input, headBytes + size, this.words)
    return true
  }

  /** Writes the id behind the head, its code units in one byte each if they fit; gives its size in bytes. */
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

  /** From the word that an id of this size ends in, to the end of its block. */
  #clearFrom(size: number): void {
    const end = (headBytes + size) >>> 2
    const input = this.#input
    input[end] = 0
    input[end + 1] = 0
    input[end + 2] = 0
    input[end + 3] = 0
  }
}
