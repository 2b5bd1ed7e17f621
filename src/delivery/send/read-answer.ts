import type { Answer, KeptAnswer } from './kept-answer.ts'

/** The answers whose whole body is read. */
export type AnswersRead = {
  /** Limit on the bytes of a body. A longer body isn't reported as `whole`. */
  readonly maxBytes: number
  /** Decides by the head of an answer whether its body is read. */
  readonly wants: (status: number, contentType: string | undefined) => boolean
}

/** The whole body of an answer, collected while it arrives. It also collects what is kept of the answer. */
export class ReadAnswer {
  readonly #read: AnswersRead
  readonly #kept: KeptAnswer | undefined
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #answer: Answer | undefined
  #isKept = false

  constructor(read: AnswersRead, kept: KeptAnswer | undefined) {
    this.#read = read
    this.#kept = kept
  }

  /** Starts to collect, and returns true, if the body of this answer has to be awaited. */
  begin(
    answer: Answer,
    contentEncoding: string | string[] | undefined,
    contentType: string | undefined,
  ): boolean {
    this.#isKept = this.#kept?.begin(answer, contentEncoding) === true
    const isPlain = contentEncoding === undefined || contentEncoding === 'identity'
    if (isPlain && this.#read.wants(answer.status, contentType)) this.#answer = answer
    return this.hasBegun
  }

  get hasBegun(): boolean {
    return this.#isKept || this.#answer !== undefined
  }

  /** Adds a chunk of the body. Returns true if nothing more has to be read. */
  take(chunk: Buffer): boolean {
    const isKeptWhole = this.#kept?.take(chunk) === true
    if (this.#answer === undefined) return isKeptWhole
    this.#bytes += chunk.length
    if (this.#bytes > this.#read.maxBytes) return true
    // The chunk is copied, because undici reuses its memory.
    this.#chunks.push(Buffer.from(chunk))
    return false
  }

  /** Returns the answer with what has come of its body. Returns `undefined` if no body is awaited. */
  outcome(): Answer | undefined {
    const answer = (this.#isKept ? this.#kept?.outcome() : undefined) ?? this.#answer
    if (answer === undefined || this.#answer === undefined || this.#bytes > this.#read.maxBytes) return answer
    return { ...answer, whole: new Uint8Array(Buffer.concat(this.#chunks)) }
  }
}
