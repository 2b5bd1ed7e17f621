import type { OnReadOpts, Socket } from 'node:net'
import { replaceFile } from './kafkajs-file.ts'

/** The number before each answer: the bytes of the answer. */
const lengthBytes = 4
/** A longer answer isn't one of a broker. No memory is taken for it. */
const mostBytes = 256 * 1024 ** 2
/**
 * While it isn't known how long an answer is, all connections read into this buffer, and copy from it at
 * once.
 */
const room = Buffer.allocUnsafeSlow(64 * 1024)

/**
 * Returns the option `onread` of a connection to a broker. The connection then gives each answer as a whole,
 * in one buffer, with its length before it. The answer to a fetch is read into this buffer. Otherwise, Node
 * takes 64 KiB for each read, and kafkajs copies all of them when the last one has come.
 */
export function answerReads(): OnReadOpts {
  const reads = new AnswerReads()
  return {
    buffer: () => reads.nextRoom(),
    callback(this: Socket, bytes) {
      return reads.came(this, bytes)
    },
  }
}

/** The parts of a connection of kafkajs 2.2.4 that collect the bytes of an answer. */
type Internals = {
  chunks: readonly Buffer[]
  readonly bytesBuffered: number
  processData(this: Internals, bytes: Buffer): void
}

/**
 * Changes kafkajs' connections, so that they don't keep the empty rest of an answer, and with it the whole
 * answer. They would also copy the next answer, to put both together. Call this before making the first
 * client.
 */
export function mendAnswerBuffers(): void {
  replaceFile<{ readonly prototype: Internals }>('kafkajs/src/network/connection.js', (original) => {
    const { prototype } = original
    // oxlint-disable-next-line typescript/unbound-method -- called below with a `this`
    const { processData } = prototype
    prototype.processData = function process(bytes) {
      processData.call(this, bytes)
      if (this.bytesBuffered === 0) this.chunks = []
    }
    return original
  })
}

class AnswerReads {
  /** The length of the next answer, of which `#lengthCame` bytes have come. */
  readonly #length = Buffer.alloc(lengthBytes)
  #lengthCame = 0
  /** The answer of which a part has come, with its length before it. */
  #answer: Buffer | undefined
  #came = 0
  /** True if the last result of `nextRoom` was a part of `#answer`. */
  #isDirect = false
  /** True once something came that no broker sends. All that comes is then given as it is. */
  #isForeign = false

  nextRoom(): Uint8Array {
    this.#isDirect = this.#answer !== undefined
    return this.#answer?.subarray(this.#came) ?? room
  }

  /**
   * Takes bytes that are in the last result of `nextRoom`. Returns false if nothing more should be read now.
   */
  came(socket: Socket, bytes: number): boolean {
    if (!this.#isDirect) return this.#take(socket, room.subarray(0, bytes))
    this.#came += bytes
    return this.#give(socket)
  }

  #take(socket: Socket, bytes: Buffer): boolean {
    if (this.#isForeign) return socket.push(Buffer.from(bytes))
    let mayGoOn = true
    for (let at = 0; at < bytes.length;) {
      if (this.#answer === undefined) {
        at += this.#takeLength(bytes, at)
        if (this.#lengthCame < lengthBytes) break
        if (!this.#begin()) return socket.push(Buffer.concat([this.#length, bytes.subarray(at)]))
      }
      at += this.#takeContent(bytes, at)
      mayGoOn = this.#give(socket)
    }
    return mayGoOn
  }

  /** Takes bytes of the length of an answer. Returns how many these were. */
  #takeLength(bytes: Buffer, at: number): number {
    const taken = bytes.copy(this.#length, this.#lengthCame, at)
    this.#lengthCame += taken
    return taken
  }

  /** Begins an answer whose length has come. Returns false if no broker sends such an answer. */
  #begin(): boolean {
    const length = this.#length.readInt32BE()
    this.#isForeign = length < 0 || length > mostBytes
    if (this.#isForeign) return false
    this.#answer = Buffer.allocUnsafe(lengthBytes + length)
    this.#came = this.#length.copy(this.#answer)
    this.#lengthCame = 0
    return true
  }

  #takeContent(bytes: Buffer, at: number): number {
    if (this.#answer === undefined) return 0
    const taken = bytes.copy(this.#answer, this.#came, at)
    this.#came += taken
    return taken
  }

  /** Gives the answer if it is whole. */
  #give(socket: Socket): boolean {
    const answer = this.#answer
    if (answer === undefined || this.#came < answer.length) return true
    this.#answer = undefined
    return socket.push(answer)
  }
}
