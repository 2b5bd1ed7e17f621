import { invalid } from './canonical-number.ts'
import { backslash, copyBytes, escapable, quote } from './json-bytes.ts'

const slash = 0x2f
const letterU = 0x75
/** The letters of the escapes that JSON.stringify writes for control characters, by code. */
const letters = new Map(Object.entries({ 8: 'b', 9: 't', 10: 'n', 12: 'f', 13: 'r' }).map(byCode))

function byCode([code, letter]: [string, string]): [number, number] {
  return [Number(code), letter.charCodeAt(0)]
}

/** The escapes that were read. They cost many times as much as other bytes of a text. */
export const counted = { escapes: 0 }

/**
 * Copies the string between `start` and `end`, with its quotation marks, as JSON.stringify spells it. It
 * needs no more bytes than the string had. Returns the place in `to` after the string, or `invalid` if an
 * escape isn't one of JSON.
 */
export function writeEscapes(from: Buffer, start: number, end: number, to: Buffer, toStart: number): number {
  let at = start
  let next = toStart
  let escapes = 0
  for (; at < end; escapes++) {
    if (from[at] !== backslash) {
      const runStart = at
      at = endOfRun(from, at, end)
      copyBytes(from, runStart, at, to, next)
      next += at - runStart
      if (at === end) break
    }
    const escaped = from[at + 1] ?? 0
    if (escapable[escaped] === 1) {
      to[next++] = backslash
      to[next++] = escaped
      at += 2
    } else if (escaped === slash) {
      to[next++] = slash
      at += 2
    } else {
      const unit = escaped === letterU ? unitAt(from, at + 2) : invalid
      if (unit === invalid) return invalid
      at += unitBytes
      const low =
        isHigh(unit) && from[at] === backslash && from[at + 1] === letterU ? unitAt(from, at + 2) : 0
      if (low === invalid) return invalid
      if (!isLow(low)) next = writeUnit(unit, to, next)
      else {
        at += unitBytes
        next = writeCodePoint(0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00), to, next)
      }
    }
  }
  counted.escapes += escapes
  return next
}

/** So many bytes are looked at one by one, because a search has a price. */
const mostLookedAt = 128

/** Returns the place of the next backslash, or `end`. */
function endOfRun(from: Buffer, start: number, end: number): number {
  const near = Math.min(end, start + mostLookedAt)
  for (let at = start; at < near; at++) if (from[at] === backslash) return at
  if (near === end) return end
  const found = from.subarray(near, end).indexOf(backslash)
  return found === -1 ? end : near + found
}

/** The length of an escape such as `\u0041`. */
const unitBytes = 6
const hexDigits = '0123456789abcdef'
const hexValues = new Int8Array(256).fill(invalid)
for (let value = 0; value < hexDigits.length; value++) {
  hexValues[hexDigits.charCodeAt(value)] = value
  hexValues[hexDigits.toUpperCase().charCodeAt(value)] = value
}

/** Returns the number that four hexadecimal digits spell, or `invalid`. */
function unitAt(from: Buffer, start: number): number {
  let unit = 0
  for (let at = start; at < start + 4; at++) {
    const value = hexValues[from[at] ?? 0] ?? invalid
    if (value === invalid) return invalid
    unit = unit * 16 + value
  }
  return unit
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000
}

/** Writes a unit that is no half of a pair. A lone surrogate stays an escape. */
function writeUnit(unit: number, to: Buffer, start: number): number {
  const letter = unit === quote || unit === backslash ? unit : unit < 0x20 ? letters.get(unit) : undefined
  if (letter !== undefined) {
    to[start] = backslash
    to[start + 1] = letter
    return start + 2
  }
  if (unit >= 0x20 && !isHigh(unit) && !isLow(unit)) return writeCodePoint(unit, to, start)
  to[start] = backslash
  to[start + 1] = letterU
  let at = start + 2
  for (let shift = 12; shift >= 0; shift -= 4) to[at++] = hexDigits.charCodeAt((unit >> shift) & 0xf)
  return at
}

function writeCodePoint(code: number, to: Buffer, start: number): number {
  if (code < 0x80) {
    to[start] = code
    return start + 1
  }
  if (code < 0x800) {
    to[start] = 0xc0 | (code >> 6)
    to[start + 1] = 0x80 | (code & 0x3f)
    return start + 2
  }
  if (code < 0x1_0000) {
    to[start] = 0xe0 | (code >> 12)
    to[start + 1] = 0x80 | ((code >> 6) & 0x3f)
    to[start + 2] = 0x80 | (code & 0x3f)
    return start + 3
  }
  to[start] = 0xf0 | (code >> 18)
  to[start + 1] = 0x80 | ((code >> 12) & 0x3f)
  to[start + 2] = 0x80 | ((code >> 6) & 0x3f)
  to[start + 3] = 0x80 | (code & 0x3f)
  return start + 4
}
