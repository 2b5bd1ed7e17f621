import { isDigit, minus } from './canonical-number.ts'
import { infinite, losesDigits } from './json-numbers.ts'

/** What is known of the number that was written last. */
export const lastNumber = {
  /** True if it is too large for a double. It is written as `infinite`, with its sign. */
  isInfinite: false,
  /** True if it is a whole number that no double can represent. */
  hasLostDigits: false,
}

/** The number that was written last. JavaScript writes no number that is longer. */
export const numberBytes = Buffer.alloc(32)
/** The length of what was written to `numberBytes` so far. */
let length = 0

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
/**
 * Numbers up to this power are finite, and those of larger powers infinite. Of the numbers of the next power,
 * those below 1.7e308 are finite, and those from 1.8e308 on infinite.
 */
const mostPower = 308
/**
 * Doubles below 2.2e-308 have fewer bits. The smaller they are, the fewer digits they keep: none at this
 * power, and one more at each larger power.
 */
const powerWithoutDigits = -322
/** Every smaller number is zero. */
const leastPower = -330
/** More than the length of any text, so that digits after the point can't make up for what was cut off. */
const mostExponent = 1e15

/** The first digits of the number, from the first one that isn't zero. */
const digits = new Uint8Array(mostWholeDigits)

/**
 * Writes the number of JSON between `start` and `end` to `numberBytes`, as JSON.stringify spells it, and
 * returns its length. Most numbers aren't converted to doubles and back, because that would cost a multiple
 * of what their digits cost.
 */
export function writeNumber(from: Buffer, start: number, end: number): number {
  length = 0
  lastNumber.isInfinite = lastNumber.hasLostDigits = false
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
  if (isWhole && count > mostKeptDigits) {
    if (count > mostWholeDigits) writeDouble(from.toString('latin1', start, end))
    else writeWhole(count, isNegative)
    return length
  }
  const isWritten = writeShort(significant, power, isNegative)
  if (!isWritten) writeDouble(from.toString('latin1', start, end))
  return length
}

/** Writes a number from its digits, if there aren't too many. Otherwise returns false. */
function writeShort(count: number, power: number, isNegative: boolean): boolean {
  // JSON.stringify writes minus zero as zero.
  if (count === 0 || power < leastPower) put(zero)
  else if (power > mostPower + 1 || (power > mostPower && firstTwo(count) >= 18)) writeInfinite(isNegative)
  else if (
    (power <= mostPower || firstTwo(count) < 17) &&
    count <= Math.min(mostKeptDigits, power - powerWithoutDigits)
  ) {
    if (isNegative) put(minus)
    writeDigits(count, power)
  } else if (count <= mostTinyDigits && power - count < leastTinyPower) {
    return writeTiny(count, power - count, isNegative)
  } else return false
  return true
}

/** Returns the number that the first two digits spell. */
function firstTwo(count: number): number {
  return count > 1 ? wholeOf(0, 2) : 10 * wholeOf(0, 1)
}

function put(byte: number): void {
  numberBytes[length++] = byte
}

function exponentAt(from: Buffer, start: number, end: number): number {
  const sign = from[start]
  let exponent = 0
  for (let at = sign === plus || sign === minus ? start + 1 : start; at < end; at++) {
    exponent = Math.min(mostExponent, 10 * exponent + ((from[at] ?? zero) - zero))
  }
  return sign === minus ? -exponent : exponent
}

function writeInfinite(isNegative: boolean): void {
  lastNumber.isInfinite = true
  writeText(isNegative ? `-${infinite}` : infinite)
}

/** Writes a number by making it a double. */
function writeDouble(token: string): void {
  const value = Number(token)
  lastNumber.hasLostDigits = losesDigits(token, value)
  if (Number.isFinite(value)) writeText(String(value))
  else writeInfinite(value < 0)
}

/** The number of digits in the lower part of a whole number. */
const lowDigits = 9
const lowFactor = 10 ** lowDigits
const shift = 2 ** 20

/**
 * Writes a whole number of 16 to 21 digits. It is the sum of two whole numbers below 2^70
 * that are doubles, so their sum is the nearest double.
 */
function writeWhole(count: number, isNegative: boolean): void {
  if (isNegative) put(minus)
  const high = wholeOf(0, count - lowDigits)
  const low = wholeOf(count - lowDigits, count)
  const rest = high % shift
  const one = ((high - rest) / shift) * lowFactor * shift
  const other = rest * lowFactor + low
  const value = one + other
  // The double differs from the number by less than 2^32, and this compares their last 32 bits.
  lastNumber.hasLostDigits = (((one | 0) + (other | 0)) | 0) !== (value | 0)
  writeText(String(value))
}

/** A whole number of so many digits is still known well enough after the operations of `writeTiny`. */
const mostTinyDigits = 9
/** Below this power, all doubles are small multiples of the smallest one. */
const leastTinyPower = -322
/**
 * The smallest double, divided by 10^-324, with all of its digits. As a number of JavaScript, 5e-324 has one.
 */
const smallest = 4.940656458412465
/** What is within this part of a number may be on either side of it. */
const uncertain = 1e-14

/**
 * Writes a number that is `digits` × 10^power and at most 10^-313. JavaScript writes the shortest number that
 * is nearer to its double than to any other. Returns false if two numbers are too close to decide.
 */
function writeTiny(count: number, power: number, isNegative: boolean): boolean {
  const exact = (wholeOf(0, count) * 10 ** (power + 324)) / smallest
  const multiple = Math.round(exact)
  if (isNear(Math.abs(exact - multiple), 1 / 2, exact)) return false
  if (multiple === 0) {
    put(zero)
    return true
  }
  let step = smallest
  let shortest = Math.round(multiple * step)
  if (isNear(Math.abs(multiple * step - shortest), 1 / 2, shortest)) return false
  let shortestPower = -324
  for (;;) {
    step /= 10
    const wanted = multiple * step
    const shorter = Math.round(wanted)
    const distance = Math.abs(wanted - shorter)
    if (isNear(distance, step / 2, wanted)) return false
    if (shorter === 0 || distance > step / 2) break
    shortest = shorter
    shortestPower++
  }
  if (isNegative) put(minus)
  const shortestCount = setDigits(shortest)
  writeDigits(shortestCount, shortestPower + shortestCount)
  return true
}

/** Returns the whole number that the digits between `start` and `end` spell. */
function wholeOf(start: number, end: number): number {
  let whole = 0
  for (let at = start; at < end; at++) whole = 10 * whole + ((digits[at] ?? zero) - zero)
  return whole
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
function writeDigits(count: number, power: number): void {
  if (power > mostPlainPower || power <= leastPlainPower) {
    putDigits(0, 1)
    if (count > 1) put(point)
    putDigits(1, count)
    put(letterE)
    put(power > 0 ? plus : minus)
    writeText(String(Math.abs(power - 1)))
  } else if (power <= 0) {
    put(zero)
    put(point)
    putZeros(-power)
    putDigits(0, count)
  } else {
    putDigits(0, Math.min(count, power))
    putZeros(power - count)
    if (count > power) put(point)
    putDigits(power, count)
  }
}

// These two keep the length in a local variable, because they write most of what is written.

function putDigits(from: number, end: number): void {
  let to = length
  for (let at = from; at < end; at++) numberBytes[to++] = digits[at] ?? zero
  length = to
}

function putZeros(count: number): void {
  let to = length
  for (let left = count; left > 0; left--) numberBytes[to++] = zero
  length = to
}

/** Writes a text, which must be ASCII. */
function writeText(text: string): void {
  for (let at = 0; at < text.length; at++) put(text.charCodeAt(at))
}
