/** Bytes of a text from `start` to before `end`. */
export type Range = { readonly start: number; readonly end: number }

/** What was found in a text. */
export class Found {
  /** For each byte, the length of the longest range that was found and ends with the byte, or 0. */
  readonly #lengths: Uint32Array
  /** The end of the last range, or 0. */
  #last = 0

  /** `length`: the number of bytes of the text. */
  constructor(length: number) {
    this.#lengths = new Uint32Array(length)
  }

  /** Adds the range of `length` bytes before `end`. */
  add(end: number, length: number): void {
    if (end > this.#last) this.#last = end
    if (length > (this.#lengths[end - 1] ?? 0)) this.#lengths[end - 1] = length
  }

  /**
   * Returns the ranges in the order from the end of the text to its beginning. Ranges that overlap or touch
   * are one.
   */
  ranges(): Range[] {
    const ranges: Range[] = []
    let end = this.#last
    let start = end
    for (let at = end; at > 0; at--) {
      const length = this.#lengths[at - 1] ?? 0
      if (length === 0) continue
      if (at < start) {
        if (start < end) ranges.push({ start, end })
        start = at - length
        end = at
      } else if (at - length < start) start = at - length
    }
    if (start < end) ranges.push({ start, end })
    return ranges
  }
}
