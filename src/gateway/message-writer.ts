import { closeBrace, comma, openBrace } from '../message/canonical-scan.ts'

/**
 * The least length in bytes of a piece that is copied with `Buffer.copy`. Shorter pieces are copied byte by
 * byte, which is faster for them.
 */
const leastCopied = 40

/** Builds one message after the other from pieces of bytes. Each message gets a buffer of its own. */
export class MessageWriter {
  #to: Buffer = Buffer.alloc(0)
  #at = 0

  /** Begins a message of `length` bytes. */
  begin(length: number): void {
    this.#to = Buffer.allocUnsafe(length)
    this.#at = 0
  }

  bytes(from: Buffer, start: number, end: number): void {
    const to = this.#to
    let at = this.#at
    this.#at += end - start
    if (end - start >= leastCopied) from.copy(to, at, start, end)
    else for (let next = start; next < end; next++) to[at++] = from[next] ?? 0
  }

  /**
   * Writes a comma, or the opening brace if these members are the first, and then one or more neighbouring
   * members of an object. The members are those bytes of the buffer `from` that are between `start` and
   * `end`. Writes nothing if `end` is not after `start`, because then there is no member.
   */
  members(from: Buffer, start: number, end: number): void {
    if (end <= start) return
    this.#to[this.#at] = this.#at === 0 ? openBrace : comma
    this.#at++
    this.bytes(from, start, end)
  }

  byte(byte: number): void {
    this.#to[this.#at++] = byte
  }

  /** Writes a text, which must be ASCII. */
  text(text: string): void {
    for (let index = 0; index < text.length; index++) this.#to[this.#at++] = text.charCodeAt(index)
  }

  /**
   * Closes the object and returns it. Throws if the length of the object isn't the `length` that was passed
   * to `begin`. Otherwise uninitialized memory could go to Kafka, with other data in it.
   */
  finished(): Buffer {
    const written = this.#to
    this.#to[this.#at++] = closeBrace
    if (this.#at !== written.length) {
      throw new Error(`a message of ${written.length} bytes ended at ${this.#at}`)
    }
    this.#to = nothing
    return written
  }
}

const nothing = Buffer.alloc(0)
