import { endOfNumber, invalid, isDigit, minus } from './canonical-number.ts'
import { counted, writeEscapes } from './json-escapes.ts'
import { skipSpace } from './json-skip.ts'
import { endOfAnyNumber, endOfNonNumber } from './json-numbers.ts'
import { hashBetween, MemberOrder } from './member-order.ts'
import { lastNumber, numberBytes, writeNumber } from './number-writer.ts'
import {
  backslash,
  closeBrace,
  closeBracket,
  colon,
  comma,
  copyBytes,
  escapable,
  hashFactor,
  hashSeed,
  isAt,
  openBrace,
  openBracket,
  plain,
  quote,
} from './json-bytes.ts'

// Brings JSON into the spelling of JSON.stringify token by token, without making values of it. What a text
// costs depends on its length alone: an odd key, number or string costs only what its own text costs.

type Respelled = {
  /** The place after the value in the bytes that were given. */
  readonly end: number
  /** The length of the respelled value in bytes. */
  readonly length: number
  /** True if a value was NaN, Infinity or -Infinity. */
  readonly hasNonNumber: boolean
  /** True if a number was too large for a double. It is respelled as `infinite`, with its sign. */
  readonly hasInfinite: boolean
  /** The number of whole numbers beyond 2^53 that lost digits. */
  readonly lostDigits: number
  /** The number of escapes that may have had to be spelled differently. */
  readonly escapes: number
  /** The levels of nesting, including those in values that a repeated key has dropped. */
  readonly levels: number
}

// The state of the present call, in variables of the module, because only one value is respelled at a time.
let from: Buffer = Buffer.alloc(0)
let to: Buffer = Buffer.allocUnsafe(128 * 1_024)
let written = 0
/** The buffer that begins with the value that was respelled last, and the length of that value. */
let result: Buffer = to
let resultLength = 0
let hasNonNumber = false
let hasInfinite = false
let lostDigits = 0
let levels = 0

/** What is known of an open container: where its content begins in `to`, and whether it is a list. */
let openStarts = new Int32Array(64)
let openCount = 0
const members = new MemberOrder()

const literals = ['true', 'false', 'null'].map((text) => Buffer.from(text))
const nullText = Buffer.from('null')

/** What becomes of a value that is NaN, Infinity or -Infinity, which isn't JSON. */
type NonNumbers = 'refused' | 'null' | 'kept'

/**
 * Respells the JSON value that begins at `start`, after white space if there is some. Returns `undefined` if
 * there is no value. The bytes must be UTF-8. The result stays in this module until the next call.
 *
 * Objects that are nested deeper than `maxDepth` keep the order of their keys, and repeated keys: messages
 * with such objects are refused. Without this rule, each of thousands of levels could be put in order anew.
 */
export function respell(
  bytes: Buffer,
  start: number,
  { maxDepth, nonNumbers = 'refused' }: { readonly maxDepth: number; readonly nonNumbers?: NonNumbers },
): Respelled | undefined {
  from = bytes
  written = 0
  hasNonNumber = hasInfinite = false
  lostDigits = openCount = levels = counted.escapes = 0
  members.reset()
  const end = endOfValue(start, maxDepth, nonNumbers)
  from = nothing
  if (end === invalid) return undefined
  result = members.isOutOfOrder ? members.ordered(to, written) : to
  resultLength = members.isOutOfOrder ? result.length : written
  return {
    end,
    length: resultLength,
    hasNonNumber,
    hasInfinite,
    lostDigits,
    escapes: counted.escapes,
    levels,
  }
}

/**
 * Returns what `JSON.stringify(JSON.parse(…))` returns for the value that was respelled last, but see
 * `infinite`.
 */
export function respelledText(): string {
  return result.toString('utf8', 0, resultLength)
}

/** Copies the value that was respelled last. There must be room for it. */
export function copyRespelled(target: Buffer, start: number): void {
  result.copy(target, start, 0, resultLength)
}

const nothing = Buffer.alloc(0)

function endOfValue(start: number, maxDepth: number, nonNumbers: NonNumbers): number {
  let at = start
  for (;;) {
    // A value begins here.
    at = skipSpace(from, at)
    const first = from[at]
    if (first === openBrace || first === openBracket) {
      open(first)
      at = skipSpace(from, at + 1)
      const isEmpty = from[at] === (first === openBrace ? closeBrace : closeBracket)
      if (!isEmpty) {
        if (first === openBrace) at = key(at)
        if (at === invalid) return invalid
        continue
      }
    } else {
      at = scalar(at, first, nonNumbers)
      if (at === invalid) return invalid
    }
    // A value has ended here, or an empty container is about to.
    for (;;) {
      if (openCount === 0) return at
      at = skipSpace(from, at)
      const isObject = members.isInObject
      const byte = from[at]
      if (byte === comma) {
        to[written++] = comma
        at++
        if (isObject) at = key(skipSpace(from, at))
        if (at === invalid) return invalid
        break
      }
      if (byte !== (isObject ? closeBrace : closeBracket)) return invalid
      close(byte, maxDepth)
      at++
    }
  }
}

function open(bracket: number): void {
  ensure(2)
  to[written++] = bracket
  if (openCount === openStarts.length) {
    const larger = new Int32Array(2 * openCount)
    larger.set(openStarts)
    openStarts = larger
  }
  openStarts[openCount++] = written
  if (openCount > levels) levels = openCount
  members.open(bracket === openBrace)
}

function close(bracket: number, maxDepth: number): void {
  const start = openStarts[--openCount] ?? 0
  if (members.isInObject && openCount < maxDepth) members.findOrder(to, start, written)
  members.close()
  ensure(2)
  to[written++] = bracket
}

/** Writes a key and its colon. Returns the place after the colon. */
function key(start: number): number {
  const bytes = from
  if (bytes[start] !== quote) return invalid
  const keyAt = written
  let at = start + 1
  let hash = hashSeed
  for (let byte = bytes[at] ?? quote; plain[byte] === 1; byte = bytes[at] ?? quote) {
    hash = Math.imul(hash ^ byte, hashFactor)
    at++
  }
  const isPlain = bytes[at] === quote
  const end = isPlain ? copied(start, at + 1) : string(start)
  if (end === invalid) return invalid
  members.add(to, keyAt, written, isPlain ? hash : hashBetween(to, keyAt + 1, written - 1))
  const colonAt = bytes[end] === colon ? end : skipSpace(from, end)
  if (bytes[colonAt] !== colon) return invalid
  to[written++] = colon
  return colonAt + 1
}

function scalar(at: number, first: number | undefined, nonNumbers: NonNumbers): number {
  if (first === quote) return string(at)
  if (first === minus || isDigit(first)) {
    const end = number(at)
    return end === invalid ? nonNumber(at, nonNumbers) : end
  }
  for (const literal of literals) {
    if (isAt(from, at, at + literal.length, literal)) return copied(at, at + literal.length)
  }
  return nonNumber(at, nonNumbers)
}

function nonNumber(at: number, nonNumbers: NonNumbers): number {
  const end = nonNumbers === 'refused' ? invalid : endOfNonNumber(from, at)
  if (end === invalid) return invalid
  hasNonNumber = true
  if (nonNumbers === 'kept') return copied(at, end)
  ensure(numberBytes.length)
  written += nullText.copy(to, written)
  return end
}

function number(at: number): number {
  const short = endOfNumber(from, at)
  if (short !== invalid && endsNumber(from[short])) return copied(at, short)
  const end = endOfAnyNumber(from, at)
  if (end === invalid) return invalid
  ensure(numberBytes.length)
  const length = writeNumber(from, at, end)
  copyBytes(numberBytes, 0, length, to, written)
  written += length
  hasInfinite ||= lastNumber.isInfinite
  if (lastNumber.hasLostDigits) lostDigits++
  return end
}

/** Returns true if a byte after a number isn't a part of it. */
function endsNumber(byte: number | undefined): boolean {
  return !isDigit(byte) && byte !== 0x2e && byte !== 0x65 && byte !== 0x45
}

/** Writes a string with its quotation marks. */
function string(start: number): number {
  const bytes = from
  const { length } = bytes
  let at = start + 1
  for (;;) {
    while (at < length && plain[bytes[at] ?? 0] === 1) at++
    const byte = bytes[at]
    if (byte === quote) return copied(start, at + 1)
    if (byte !== backslash) return invalid
    if (escapable[bytes[at + 1] ?? 0] !== 1) return escapedString(start, at)
    at += 2
  }
}

/** Writes a string that has an escape at `escape` which JSON.stringify may spell differently. */
function escapedString(start: number, escape: number): number {
  const bytes = from
  const { length } = bytes
  let at = escape
  for (;;) {
    while (at < length && plain[bytes[at] ?? 0] === 1) at++
    const byte = bytes[at]
    if (byte === quote) break
    if (byte !== backslash) return invalid
    at += 2
  }
  ensure(at + 1 - start)
  const end = writeEscapes(from, start, at + 1, to, written)
  if (end === invalid) return invalid
  written = end
  return at + 1
}

function copied(start: number, end: number): number {
  const length = end - start
  ensure(length)
  copyBytes(from, start, end, to, written)
  written += length
  return end
}

/** Makes room for `length` bytes and for the separators around them. */
function ensure(length: number): void {
  if (written + length + numberBytes.length <= to.length) return
  const larger = Buffer.allocUnsafeSlow(2 * (written + length + numberBytes.length))
  to.copy(larger, 0, 0, written)
  to = larger
}
