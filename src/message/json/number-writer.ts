import { invalid, isDigit, minus } from './canonical-number.ts'
import { infinite, losesDigits } from './json-numbers.ts'

/** What is known of the number that was written last. */
export const lastNumber = {
  /** True if it is too large for a double. It is written as `infinite`, with its sign. */
  isInfinite: false,
  /** True if it is a whole number that no double can represent. */
  hasLostDigits: false,
}

/** The longest number that JavaScript writes, and room for separators. */
export const mostNumberBytes = 32

const plus = 0x2b
const point = 0x2e
const zero = 0x30
const letterE = 0x65
/**
 * A number of so many digits is written with the same digits again, because a double keeps 15 digits. So it
 * needn't be made a double.
 */
const mostKeptDigits = 15
/** Every whole number of so few digits is the sum of two doubles that `writeWhole` knows exactly. */
const mostWholeDigits = 21
/** All numbers of this power are finite. */
const mostPower = 308
/**
 * Doubles below 2.2e-308 have fewer bits. The smaller they are, the fewer digits they keep: none at this power,
 * and one more at each larger power.
 */
const powerWithoutDigits = -322
/** Every larger number is infinite. */
const leastInfinitePower = 310
/** Every smaller number is zero. */
const leastPower = -330
/** More than the length of any text, so that digits after the point can't make up for what was cut off. */
const mostExponent = 1e15

/** The first digits of the number, from the first one that isn't zero. */
const digits = new Uint8Array(mostWholeDigits)

/**
 * Writes the number of JSON between `start` and `end` as JSON.stringify spells it, and returns the place in
 * `to` after it. Needs `mostNumberBytes`. Most numbers aren't converted to doubles and back, because that
 * would cost a multiple of what their digits cost.
 */
export function writeNumber(from: Buffer, start: number, end: number, to: Buffer, toStart: number): number {
  const isNegative = from[start] === minus
  let count = 0
  let significant = 0
  // The number is 0.DIGITS × 10^power.
  let power = 0
  let isWhole = true
  let at = isNegative ? start + 1 : start
  for (; at < end; at++) {
    const byte = from[at] ?? 0
    if (byte === point) isWhole = false
    else if (!isDigit(byte)) break
    else if (count > 0 || byte !== zero) {
      if (count < mostWholeDigits) digits[count] = byte
      count++
      if (byte !== zero) significant = count
      if (isWhole) power++
    } else if (!isWhole) power--
  }
  if (at < end) {
    isWhole = false
    power += exponentAt(from, at + 1, end)
  }
  lastNumber.isInfinite = lastNumber.hasLostDigits = false
  let next = toStart
  // JSON.stringify writes minus zero as zero.
  if (significant === 0 || power < leastPower) {
    to[next++] = zero
    return next
  }
  if (power > leastInfinitePower) return writeInfinite(isNegative, to, next)
  if (isWhole && count > mostKeptDigits) {
    if (count > mostWholeDigits) return writeDouble(from.toString('latin1', start, end), to, next)
    if (isNegative) to[next++] = minus
    return writeWhole(count, to, next)
  }
  if (power <= mostPower && significant <= Math.min(mostKeptDigits, power - powerWithoutDigits)) {
    if (isNegative) to[next++] = minus
    return writeDigits(significant, power, to, next)
  }
  if (significant <= mostTinyDigits && power - significant < leastTinyPower) {
    const tinyEnd = writeTiny({ count: significant, power: power - significant, isNegative }, to, next)
    if (tinyEnd !== invalid) return tinyEnd
  }
  return writeDouble(from.toString('latin1', start, end), to, next)
}

function exponentAt(from: Buffer, start: number, end: number): number {
  const sign = from[start]
  let exponent = 0
  for (let at = sign === plus || sign === minus ? start + 1 : start; at < end; at++) {
    exponent = Math.min(mostExponent, 10 * exponent + ((from[at] ?? zero) - zero))
  }
  return sign === minus ? -exponent : exponent
}

function writeInfinite(isNegative: boolean, to: Buffer, start: number): number {
  lastNumber.isInfinite = true
  return writeText(isNegative ? `-${infinite}` : infinite, to, start)
}

/** Writes a number by making it a double. */
function writeDouble(token: string, to: Buffer, start: number): number {
  const value = Number(token)
  if (!Number.isFinite(value)) return writeInfinite(value < 0, to, start)
  lastNumber.hasLostDigits = losesDigits(token, value)
  return writeText(String(value), to, start)
}

/** The number of digits in the lower part of a whole number. */
const lowDigits = 9
const lowFactor = 10 ** lowDigits
const shift = 2 ** 20

/**
 * Writes a whole number of 16 to 21 digits, without its sign. It is the sum of two whole numbers below 2^70
 * that are doubles, so their sum is the nearest double.
 */
function writeWhole(count: number, to: Buffer, start: number): number {
  let high = 0
  for (let at = 0; at < count - lowDigits; at++) high = 10 * high + ((digits[at] ?? zero) - zero)
  let low = 0
  for (let at = count - lowDigits; at < count; at++) low = 10 * low + ((digits[at] ?? zero) - zero)
  const rest = high % shift
  const one = ((high - rest) / shift) * lowFactor * shift
  const other = rest * lowFactor + low
  const value = one + other
  // The double differs from the number by less than 2^32, and this compares their last 32 bits.
  lastNumber.hasLostDigits = (((one | 0) + (other | 0)) | 0) !== (value | 0)
  return writeText(String(value), to, start)
}

/** A whole number of so many digits is still known well enough after the operations of `writeTiny`. */
const mostTinyDigits = 9
/** Below this power, all doubles are small multiples of the smallest one. */
const leastTinyPower = -322
/** The smallest double, divided by 10^-324, with all of its digits. As a number of JavaScript, 5e-324 has one. */
const smallest = 4.940656458412465
/** What is within this part of a number may be on either side of it. */
const uncertain = 1e-14

/**
 * Writes a number that is `digits` × 10^power and at most 10^-313. JavaScript writes the shortest number that
 * is nearer to its double than to any other. Returns `invalid` if two numbers are too close to decide.
 */
function writeTiny(
  {
    count,
    power,
    isNegative,
  }: { readonly count: number; readonly power: number; readonly isNegative: boolean },
  to: Buffer,
  start: number,
): number {
  let whole = 0
  for (let at = 0; at < count; at++) whole = 10 * whole + ((digits[at] ?? zero) - zero)
  const exact = (whole * 10 ** (power + 324)) / smallest
  const multiple = Math.round(exact)
  if (isNear(Math.abs(exact - multiple), 1 / 2, exact)) return invalid
  let next = start
  if (multiple === 0) {
    to[next++] = zero
    return next
  }
  let step = smallest
  let shortest = Math.round(multiple * step)
  if (isNear(Math.abs(multiple * step - shortest), 1 / 2, shortest)) return invalid
  let shortestPower = -324
  for (;;) {
    step /= 10
    const wanted = multiple * step
    const shorter = Math.round(wanted)
    const distance = Math.abs(wanted - shorter)
    if (isNear(distance, step / 2, wanted)) return invalid
    if (shorter === 0 || distance > step / 2) break
    shortest = shorter
    shortestPower++
  }
  if (isNegative) to[next++] = minus
  const shortestCount = setDigits(shortest)
  return writeDigits(shortestCount, shortestPower + shortestCount, to, next)
}

function isNear(one: number, other: number, size: number): boolean {
  return Math.abs(one - other) <= uncertain * (size + 1)
}

/** Sets `digits` to those of a whole number, and returns how many there are. */
function setDigits(whole: number): number {
  let count = 1
  for (let power = 10; power <= whole; power *= 10) count++
  let rest = whole
  for (let at = count - 1; at >= 0; at--) {
    digits[at] = zero + (rest % 10)
    rest = Math.floor(rest / 10)
  }
  return count
}

/** Numbers above the first power, and those up to the second one, are written with an exponent. */
const mostPlainPower = 21
const leastPlainPower = -6

/** Writes a number by the rules of JavaScript's `Number::toString`, which names its parameters k and n. */
function writeDigits(count: number, power: number, to: Buffer, start: number): number {
  let next = start
  if (power > mostPlainPower || power <= leastPlainPower) {
    next = copyDigits(0, 1, to, next)
    if (count > 1) {
      to[next++] = point
      next = copyDigits(1, count, to, next)
    }
    to[next++] = letterE
    to[next++] = power > 0 ? plus : minus
    return writeText(String(Math.abs(power - 1)), to, next)
  }
  if (power <= 0) {
    to[next++] = zero
    to[next++] = point
    for (let at = power; at < 0; at++) to[next++] = zero
    return copyDigits(0, count, to, next)
  }
  next = copyDigits(0, Math.min(count, power), to, next)
  for (let at = count; at < power; at++) to[next++] = zero
  if (count <= power) return next
  to[next++] = point
  return copyDigits(power, count, to, next)
}

function copyDigits(from: number, end: number, to: Buffer, start: number): number {
  let next = start
  for (let at = from; at < end; at++) to[next++] = digits[at] ?? zero
  return next
}

/** Writes a text, which must be ASCII. */
function writeText(text: string, to: Buffer, start: number): number {
  let next = start
  for (let at = 0; at < text.length; at++) to[next++] = text.charCodeAt(at)
  return next
}
