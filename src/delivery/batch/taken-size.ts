/** How long a found size is kept, in milliseconds. Then a whole batch is tried again. */
const keptForMs = 10 * 60_000
/** Content too large: the only refusal that tells something about the size of a request. */
const tooLarge = 413

/** The sizes of the requests that one batch and its parts took, to one hook. */
export class TriedSizes {
  #first = 0
  #largestTaken = 0
  #isAboutSize = true

  refused(messages: number, status: number): void {
    this.#first = Math.max(this.#first, messages)
    if (status !== tooLarge) this.#isAboutSize = false
  }

  taken(messages: number): void {
    this.#largestTaken = Math.max(this.#largestTaken, messages)
  }

  /**
   * The number of messages that the hook seems to take at most; `undefined` if the answers don't say so. If
   * one message is too large, the half of the batch without it was taken. So only less than a half tells of a
   * limit.
   */
  get found(): number | undefined {
    const isLimit =
      this.#isAboutSize && this.#largestTaken > 0 && this.#largestTaken < Math.floor(this.#first / 2)
    return isLimit ? this.#largestTaken : undefined
  }
}

/**
 * The number of messages that a hook was found to take in one request. Without it, each batch would be halved
 * anew, and most of a batch that is ten times too large would be left for a later try, until its messages
 * expire.
 */
export class TakenSize {
  #most = Infinity
  #untilMs = 0

  /** The most messages for a request at `nowMs` (`performance.now`); Infinity if no limit is known. */
  mostAt(nowMs: number): number {
    return nowMs < this.#untilMs ? this.#most : Infinity
  }

  learn({ found }: TriedSizes, nowMs: number): void {
    if (found === undefined) return
    this.#most = found
    this.#untilMs = nowMs + keptForMs
  }
}
