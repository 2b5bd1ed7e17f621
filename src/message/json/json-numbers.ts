import { endOfDigits, invalid, isDigit, minus } from './canonical-number.ts'

/** The spelling of a number that is too large for a double. No other number is respelled in this way. */
export const infinite = '1e999'

const plus = 0x2b
const point = 0x2e
const zero = 0x30

/** Returns the place after the number of JSON (RFC 8259) that begins at `start`, or `invalid`. */
export function endOfAnyNumber(bytes: Buffer, start: number): number {
  const whole = bytes[start] === minus ? start + 1 : start
  let end = endOfDigits(bytes, whole)
  if (end === whole || (bytes[whole] === zero && end > whole + 1)) return invalid
  if (bytes[end] === point) {
    const fraction = end + 1
    end = endOfDigits(bytes, fraction)
    if (end === fraction) return invalid
  }
  if (bytes[end] !== 0x65 && bytes[end] !== 0x45) return end
  const sign = bytes[end + 1]
  const exponent = sign === plus || sign === minus ? end + 2 : end + 1
  end = endOfDigits(bytes, exponent)
  return end === exponent ? invalid : end
}

/** The words that Python's json.dumps writes for floats that JSON can't express. */
const nonNumbers = ['NaN', 'Infinity', '-Infinity'].map((word) => Buffer.from(word))

/** Returns the place after a word such as NaN that begins at `start`, or `invalid`. */
export function endOfNonNumber(bytes: Buffer, start: number): number {
  for (const word of nonNumbers) {
    if (bytes[start] === word[0] && bytes.subarray(start, start + word.length).equals(word)) {
      return start + word.length
    }
  }
  return invalid
}

/** Every whole number of fewer digits is a double. */
const leastDigits = 16
/** `toFixed` writes the digits of numbers below 1e21 exactly. */
const mostFixedDigits = 21

/**
 * Returns true if a whole number loses digits when it is read as `value`. `token` is its spelling in JSON.
 * Numbers of more than 21 digits count only if their last 15 digits show the loss, because they are no ids,
 * and an exact look at a long number is expensive.
 */
export function losesDigits(token: string, value: number): boolean {
  const digits = token.startsWith('-') ? token.slice(1) : token
  if (digits.length < leastDigits || !Number.isFinite(value)) return false
  for (let at = 0; at < digits.length; at++) if (!isDigit(digits.charCodeAt(at))) return false
  if (digits.length <= mostFixedDigits) return Math.abs(value).toFixed(0) !== digits
  // A double of so many digits is a multiple of 2^15, and so is 10^15.
  return Number(digits.slice(-15)) % 2 ** 15 !== 0
}
