import { closeBrace, comma, copyBytes, openBrace } from '../../message/json/json-bytes.ts'

/**
 * Builds one message after the other from bytes of other buffers and from texts. Each message gets a buffer
 * of its own.
 */
export class MessageWriter {
  #to: Buffer = Buffer.alloc(0)
  #at = 0

  /** Begins a message of `length` bytes. */
  begin(length: number): void {
    this.#to = Buffer.allocUnsafe(length)
    this.#at = 0
  }

  bytes(from: Buffer, start: number, end: number): void {
    copyBytes(from, start, end, this.#to, this.#at)
    this.#at += end - start
  }

  /**
   * Writes one or more neighbouring members of an object: the bytes of `from` between `start` and `end`.
   * Before them, writes a comma, or the opening brace if they are the first members of the message. If `end`
   * is not after `start`, there is no member, and nothing is written.
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
   * Closes the object and returns it. If its length isn't the `length` that was passed to `begin`, throws an
   * error. Without this check, uninitialized memory with other data in it could go to Kafka.
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
