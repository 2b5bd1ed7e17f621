import type { Answer, AnswerKeeper } from './kept-answer.ts'

/** An answer of which the body is needed, such as that of a token endpoint. Nothing is masked in it. */
export class WholeAnswer implements AnswerKeeper {
  readonly #maxBytes: number
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #answer: Answer | undefined

  /** A body with more bytes than `maxBytes` is cut there. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  begin(answer: Answer): boolean {
    this.#answer = answer
    return true
  }

  get hasBegun(): boolean {
    return this.#answer !== undefined
  }

  take(chunk: Buffer): boolean {
    // The chunk is copied, because undici reuses its memory.
    this.#chunks.push(Buffer.from(chunk.subarray(0, this.#maxBytes - this.#bytes)))
    this.#bytes = Math.min(this.#maxBytes, this.#bytes + chunk.length)
    return this.#bytes === this.#maxBytes
  }

  outcome(): Answer | undefined {
    return this.#answer && { ...this.#answer, body: Buffer.concat(this.#chunks) }
  }
}
