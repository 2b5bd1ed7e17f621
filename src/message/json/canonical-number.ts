// Finds where a number in JSON ends, if the number is spelled as JSON.stringify would spell it.

/** The result for JSON that isn't spelled as JSON.stringify would spell it. */
export const invalid = -1
export const minus = 0x2d
const point = 0x2e
const zero = 0x30
const nine = 0x39
/**
 * Limit on the digits of a decimal number. A number with so few digits is certainly written with the same
 * digits by JSON.stringify, because a double keeps 15 digits.
 */
const mostDigits = 15
const mostZeros = 5

/**
 * Returns the place after the number that begins at `start`. Returns `invalid` if JSON.stringify may spell
 * the number differently.
 */
export function endOfNumber(bytes: Buffer, start: number): number {
  const whole = bytes[start] === minus ? start + 1 : start
  const isZero = bytes[whole] === zero
  const wholeEnd = endOfDigits(bytes, whole)
  const digits = wholeEnd - whole
  if (digits === 0 || digits > mostDigits || (isZero && digits > 1)) return invalid
  // JSON.stringify writes minus zero as zero.
  if (bytes[wholeEnd] !== point) return isZero && whole > start ? invalid : wholeEnd
  const fraction = wholeEnd + 1
  const end = endOfDigits(bytes, fraction)
  if (end === fraction || bytes[end - 1] === zero || digits + end - fraction > mostDigits) return invalid
  // JSON.stringify writes smaller numbers with an exponent.
  if (isZero && endOfZeros(bytes, fraction) - fraction > mostZeros) return invalid
  return end
}

export function endOfDigits(bytes: Buffer, start: number): number {
  let at = start
  while (isDigit(bytes[at])) at++
  return at
}

function endOfZeros(bytes: Buffer, start: number): number {
  let at = start
  while (bytes[at] === zero) at++
  return at
}

export function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= zero && byte <= nine
}
