import { endOfNumber, invalid, isDigit, minus } from './canonical-number.ts'
import { counted, writeEscapes } from './json-escapes.ts'
import { endOfAnyNumber } from './json-numbers.ts'
import { lastNumber, numberBytes, writeNumber } from './number-writer.ts'
import { skipSpace, skipString } from './json-skip.ts'
import {
  backslash,
  closeBrace,
  closeBracket,
  colon,
  comma,
  copyBytes,
  escapable,
  openBrace,
  openBracket,
  plain,
  quote,
} from './json-bytes.ts'

// Many clients write JSON as JSON.stringify does, but for the habits of their language. Python writes spaces
// after commas and colons, escapes for all letters beyond ASCII, and 1.0 for a whole float. PHP writes `\/`.
// To tidy such JSON and to scan it takes less time than to respell it.

/**
 * No longer object is tidied: if that were in vain, it would cost too much. Few honest messages are longer.
 */
export const mostTidied = 8 * 1_024
/** The numbers of the object that was tidied last that may have had to be spelled differently. */
let numbers = 0
/** The object that was tidied last. */
const to = Buffer.allocUnsafeSlow(mostTidied)

/** Table of bytes. It has a 1 for each byte that is a token of JSON by itself. */
const signs = tableOf(',:[]{}')
/** Table of bytes. It has a 1 for each byte that is white space of JSON. */
const spaces = tableOf(' \n\r\t')
/** Table of bytes. It has a 1 for each byte that may follow a number. */
const ends = tableOf(',:[]{} \n\r\t')
/** Table of bytes. It has a 1 for each letter of true, false and null. */
const letters = tableOf('aeflnrstu')

function tableOf(characters: string): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) =>
    characters.includes(String.fromCharCode(byte)) ? 1 : 0,
  )
}

/**
 * `end`: the place after the object in the bytes that were given. `length`: the length of the result.
 * `escapes` and `numbers`: how many escapes and numbers may have had to be spelled differently.
 */
export type Tidied = {
  readonly end: number
  readonly length: number
  readonly escapes: number
  readonly numbers: number
}

/**
 * Writes the object that begins at `start` without white space between its tokens, without needless escapes,
 * and with its numbers as JSON.stringify writes them. The object isn't checked. But if the result is in
 * canonical form, then the object is JSON, and `respell` would return the same. Returns `undefined` if there
 * is no result. The bytes must be UTF-8. The result stays in this module until the next call. A byte beyond
 * the end is read as 0, which isn't a byte of JSON.
 */
export function tidy(from: Buffer, start: number): Tidied | undefined {
  if (from[start] !== openBrace) return undefined
  counted.escapes = numbers = 0
  let open = 0
  let at = start
  let next = 0
  for (let byte = from[at] ?? 0; next < mostTidied; byte = from[at] ?? 0) {
    if (byte === quote) {
      do {
        to[next++] = byte
        byte = from[++at] ?? 0
        for (; plain[byte] === 1 && next < mostTidied; byte = from[++at] ?? 0) to[next++] = byte
        if (byte !== backslash || escapable[from[at + 1] ?? 0] !== 1) break
        to[next++] = byte
        byte = from[++at] ?? 0
      } while (next < mostTidied)
      if (byte === backslash) {
        const end = skipString(from, at - 1)
        next = next + end - at > mostTidied ? invalid : writeEscapes(from, at, end, to, next)
        if (next === invalid) return undefined
        at = end
      } else if (byte === quote) {
        to[next++] = byte
        at++
      } else return undefined
    } else if (byte === comma || byte === colon) {
      to[next++] = byte
      do at++
      while (spaces[from[at] ?? 0] === 1)
    } else if (byte === minus || isDigit(byte)) {
      const short = endOfNumber(from, at)
      const isShort = short !== invalid && ends[from[short] ?? 0] === 1
      const end = isShort ? short : endOfAnyNumber(from, at)
      if (isShort) while (at < end) to[next++] = from[at++] ?? 0
      // Without its sign, -0 would be a part of a number before it.
      else
        next = end === invalid || ends[from[end] ?? 0] !== 1 ? invalid : writeTidyNumber(from, at, end, next)
      if (next === invalid) return undefined
      at = end
    } else if (letters[byte] === 1) {
      for (; letters[byte] === 1 && next < mostTidied; byte = from[++at] ?? 0) to[next++] = byte
    } else if (byte === openBrace || byte === openBracket) {
      to[next++] = byte
      do at++
      while (spaces[from[at] ?? 0] === 1)
      open++
    } else if (byte === closeBrace || byte === closeBracket) {
      to[next++] = byte
      at++
      if (--open === 0) return { end: at, length: next, escapes: counted.escapes, numbers }
    } else {
      const end = skipSpace(from, at)
      // Without the white space, two words would become one.
      if (end === at || signs[from[end] ?? 0] !== 1) return undefined
      at = end
    }
  }
  return undefined
}

/**
 * Writes the number between `start` and `end` as JSON.stringify does. Returns the place in `to` after it, or
 * `invalid` if that isn't canonical.
 */
function writeTidyNumber(from: Buffer, start: number, end: number, next: number): number {
  numbers++
  const written = next + writeNumber(from, start, end)
  if (lastNumber.hasLostDigits) return invalid
  copyBytes(numberBytes, 0, written - next, to, next)
  to[written] = comma
  return endOfNumber(to, next) === written ? written : invalid
}

/** Copies the object that was tidied last. There must be room for it. */
export function copyTidied(target: Buffer, start: number, length: number): void {
  to.copy(target, start, 0, length)
}

/** Returns the object that was tidied last. Don't use it after the next call of `tidy`. */
export function tidiedBytes(length: number): Buffer {
  return to.subarray(0, length)
}
