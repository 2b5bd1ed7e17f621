import { endOfNumber, invalid, isDigit, minus } from './canonical-number.ts'
import {
  backslash,
  closeBrace,
  closeBracket,
  colon,
  comma,
  escapable,
  isAt,
  openBrace,
  openBracket,
  plain,
  quote,
} from './canonical-scan.ts'
import { writeEscapes } from './json-escapes.ts'
import { endOfAnyNumber, endOfNonNumber, infinite, losesDigits } from './json-numbers.ts'
import { MemberOrder } from './member-order.ts'

// Brings JSON into the spelling of JSON.stringify token by token, without making values of it. What a text
// costs depends on its length alone: an odd key, number or string costs only what its own text costs.

/** `text`: what `JSON.stringify(JSON.parse(…))` returns for the value, but see `infinite`. */
export type Respelled = {
  readonly text: string
  /** The place after the value. */
  readonly end: number
  /** True if a value was NaN, Infinity or -Infinity. It is null in `text`. */
  readonly hasNonNumber: boolean
  /** True if a number was too large for a double. It is `infinite` in `text`, with its sign. */
  readonly hasInfinite: boolean
  /** The number of whole numbers beyond 2^53 that lost digits. */
  readonly lostDigits: number
  /** The levels of nesting, including those in values that a repeated key has dropped. */
  readonly levels: number
}

// The state of the present call, in variables of the module, because only one value is respelled at a time.
let from: Buffer = Buffer.alloc(0)
let to: Buffer = Buffer.allocUnsafe(128 * 1_024)
let written = 0
let hasNonNumber = false
let hasInfinite = false
let lostDigits = 0
let levels = 0

/** The longest number that JavaScript writes, and room for separators. */
const mostNumberBytes = 32
const leastCopied = 40

/** What is known of an open container: where its content begins in `to`, and whether it is a list. */
let openStarts = new Int32Array(64)
let openCount = 0
const members = new MemberOrder()

const literals = ['true', 'false', 'null'].map((text) => Buffer.from(text))
const nullText = Buffer.from('null')

/**
 * Respells the JSON value that begins at `start`, after white space if there is some. Returns `undefined` if
 * there is no value. The bytes must be UTF-8. A value that is NaN or an infinity is no JSON, but is accepted
 * if `nonNumbers` is true.
 *
 * Objects that are nested deeper than `maxDepth` keep the order of their keys, and repeated keys: messages
 * with such objects are refused. Without this rule, each of thousands of levels could be put in order anew.
 */
export function respell(
  bytes: Buffer,
  start: number,
  { maxDepth, nonNumbers = false }: { readonly maxDepth: number; readonly nonNumbers?: boolean },
): Respelled | undefined {
  from = bytes
  written = 0
  hasNonNumber = hasInfinite = false
  lostDigits = openCount = levels = 0
  members.reset()
  const end = endOfValue(start, maxDepth, nonNumbers)
  from = nothing
  if (end === invalid) return undefined
  return { text: to.toString('utf8', 0, written), end, hasNonNumber, hasInfinite, lostDigits, levels }
}

const nothing = Buffer.alloc(0)

function endOfValue(start: number, maxDepth: number, nonNumbers: boolean): number {
  let at = start
  for (;;) {
    // A value begins here.
    at = afterSpace(at)
    const first = from[at]
    if (first === openBrace || first === openBracket) {
      open(first)
      at = afterSpace(at + 1)
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
      at = afterSpace(at)
      const isObject = members.isInObject
      const byte = from[at]
      if (byte === comma) {
        to[written++] = comma
        at++
        if (isObject) at = key(afterSpace(at))
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
  if (members.isInObject && openCount < maxDepth && members.isOutOfOrder(to)) {
    written = members.putInOrder(to, start, written)
  }
  members.close()
  ensure(2)
  to[written++] = bracket
}

/** Writes a key and its colon. Returns the place after the colon. */
function key(start: number): number {
  if (from[start] !== quote) return invalid
  const keyAt = written
  const end = string(start)
  if (end === invalid) return invalid
  members.add(to, keyAt, written)
  const colonAt = afterSpace(end)
  if (from[colonAt] !== colon) return invalid
  to[written++] = colon
  return colonAt + 1
}

function scalar(at: number, first: number | undefined, nonNumbers: boolean): number {
  if (first === quote) return string(at)
  if (first === minus || isDigit(first)) {
    const end = number(at)
    return end === invalid && nonNumbers ? nonNumber(at) : end
  }
  for (const literal of literals) {
    if (isAt(from, at, at + literal.length, literal)) return copied(at, at + literal.length)
  }
  return nonNumbers ? nonNumber(at) : invalid
}

function nonNumber(at: number): number {
  const end = endOfNonNumber(from, at)
  if (end === invalid) return invalid
  hasNonNumber = true
  ensure(mostNumberBytes)
  written += nullText.copy(to, written)
  return end
}

function number(at: number): number {
  const short = endOfNumber(from, at)
  if (short !== invalid && endsNumber(from[short])) return copied(at, short)
  const end = endOfAnyNumber(from, at)
  if (end === invalid) return invalid
  const token = from.toString('latin1', at, end)
  const value = Number(token)
  if (losesDigits(token, value)) lostDigits++
  const isFinite = Number.isFinite(value)
  hasInfinite ||= !isFinite
  ensure(mostNumberBytes)
  written += to.write(isFinite ? String(value) : (value < 0 ? '-' : '') + infinite, written, 'latin1')
  return end
}

/** Returns true if a byte after a number isn't a part of it. */
function endsNumber(byte: number | undefined): boolean {
  return !isDigit(byte) && byte !== 0x2e && byte !== 0x65 && byte !== 0x45
}

/** Writes a string with its quotation marks. */
function string(start: number): number {
  let at = start + 1
  for (;;) {
    while (plain[from[at] ?? quote] === 1) at++
    const byte = from[at]
    if (byte === quote && at < from.length) return copied(start, at + 1)
    if (byte !== backslash) return invalid
    if (escapable[from[at + 1] ?? 0] !== 1) return escapedString(start, at)
    at += 2
  }
}

/** Writes a string that has an escape at `escape` which JSON.stringify may spell differently. */
function escapedString(start: number, escape: number): number {
  let at = escape
  for (;;) {
    while (plain[from[at] ?? quote] === 1) at++
    const byte = from[at]
    if (byte === quote && at < from.length) break
    if (byte !== backslash || at + 1 >= from.length) return invalid
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
  if (length >= leastCopied) from.copy(to, written, start, end)
  else for (let at = start, next = written; at < end; at++) to[next++] = from[at] ?? 0
  written += length
  return end
}

/** Makes room for `length` bytes and for the separators around them. */
function ensure(length: number): void {
  if (written + length + mostNumberBytes <= to.length) return
  const larger = Buffer.allocUnsafeSlow(2 * (written + length + mostNumberBytes))
  to.copy(larger, 0, 0, written)
  to = larger
}

function afterSpace(start: number): number {
  let at = start
  for (let byte = from[at]; byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09; byte = from[at])
    at++
  return at
}
