/**
 * Reads whole numbers out of a text, and what stands between them, from one place to the next. Nothing is cut
 * out of the text: a restore reads millions of versions.
 */
export class NumberReader {
  readonly #text: string
  /** What is read next. */
  at: number

  constructor(text: string, at: number) {
    this.#text = text
    this.at = at
  }

  /**
   * The number that begins here, spelled as JSON spells whole numbers, and then stands behind it. NaN where
   * there is none, or one of more digits than 2^53 has; it is not told then where it stands.
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

  /** Goes on behind `literal`. False: something else is here. */
  skip(literal: string): boolean {
    if (!this.#text.startsWith(literal, this.at)) return false
    this.at += literal.length
    return true
  }
}

const minus = 0x2d
const zero = 0x30
/** Of 2^53. Larger numbers of so many digits are read too, not exactly. */
const maxDigits = 16
