/**
 * Reads whole numbers and the literals between them, from left to right. This class creates no substrings,
 * because a restore reads millions of versions.
 */
export class NumberReader {
  readonly #text: string
  /** The index of the next character to read. */
  at: number

  constructor(text: string, at: number) {
    this.#text = text
    this.at = at
  }

  /**
   * Reads the whole number at `at` and moves `at` past the number. If there is no number in JSON's spelling
   * at `at`, or if the number has more than 16 digits, returns NaN and doesn't move `at`.
   */
  next(): number {
    const text = this.#text
    const isNegative = text.charCodeAt(this.at) === minus
    const first = isNegative ? this.at + 1 : this.at
    let at = first
    let value = 0
    for (; at < text.length; at++) {
      const digit = text.charCodeAt(at) - zero
      if (!(digit >= 0 && digit <= 9)) break
      value = value * 10 + digit
    }
    const digits = at - first
    const isPadded = text.charCodeAt(first) === zero && (digits > 1 || isNegative)
    if (digits < 1 || digits > maxDigits || isPadded) return Number.NaN
    this.at = at
    return isNegative ? -value : value
  }

  /** Moves `at` past `literal`. If there is another text at `at`, returns false and doesn't move `at`. */
  skip(literal: string): boolean {
    if (!this.#text.startsWith(literal, this.at)) return false
    this.at += literal.length
    return true
  }
}

const minus = 0x2d
const zero = 0x30
/** The number of digits of 2^53. Larger numbers with 16 digits are read too, but not exactly. */
const maxDigits = 16
