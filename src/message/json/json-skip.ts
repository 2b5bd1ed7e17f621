import { backslash, closeBrace, closeBracket, comma, openBrace, openBracket, quote } from './json-bytes.ts'

// Functions that skip JSON without checking it. Before other code relies on the skipped JSON, it must be
// parsed.

/** Returns the place of the next byte, from `start` on, that isn't white space of JSON. */
export function skipSpace(bytes: Buffer, start: number): number {
  let at = start
  for (
    let byte = bytes[at];
    byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
    byte = bytes[at]
  )
    at++
  return at
}

/** Does the same as `skipSpace`, but goes at most one byte beyond `limit`. */
export function skipSpaceWithin(bytes: Buffer, start: number, limit: number): number {
  let at = start
  for (
    let byte = bytes[at];
    at <= limit && (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09);
    byte = bytes[at]
  )
    at++
  return at
}

/**
 * Returns the place after the value that begins at `start`. The result is right only if the bytes are valid
 * JSON. Reads each byte at most once.
 */
export function skipValue(bytes: Buffer, start: number): number {
  return skip(bytes, start, bytes.length)
}

/**
 * How much there is of a value. `long`: the bytes of its long texts, which cost less to process. `slow`:
 * those of them that have so many escapes that they had to be read one by one.
 */
export type Weight = { readonly bytes: number; readonly long: number; readonly slow: number }

/**
 * Weighs the value that begins at `start`. Stops as soon as it has seen more than `most` bytes that aren't in
 * long texts.
 */
export function weigh(bytes: Buffer, start: number, most: number): Weight {
  const end = skip(bytes, start, start + most)
  return { bytes: end - start, long: longBytes, slow: slowBytes }
}

/** The bytes of a text up to this number are read one by one. The further ones are in a long text. */
const leastLong = 64
/** The bytes of the long texts of the value that was skipped last. */
let longBytes = 0
/** The bytes of them that were read one by one. */
let slowBytes = 0

/**
 * Returns the place after the string that begins at `start`, or the end of the bytes. Searches for the end of
 * a long text, which is many times faster than reading it.
 */
export function skipString(bytes: Buffer, start: number): number {
  let at = start + 1
  // Where quotation marks are close together, as in `\"\"\"`, a search for each of them would cost more.
  for (let most = leastLong; at < bytes.length; most *= 2) {
    for (const read = at + most; at < read && at < bytes.length; at++) {
      const byte = bytes[at]
      if (byte === quote) return at + 1
      if (byte === backslash) at++
    }
    if (most > leastLong) slowBytes += most
    const found = bytes.indexOf(quote, at)
    if (found === -1) break
    let escape = found
    while (escape > at && bytes[escape - 1] === backslash) escape--
    if ((found - escape) % 2 === 0) return found + 1
    at = found + 1
  }
  return bytes.length
}

function skip(bytes: Buffer, start: number, limit: number): number {
  longBytes = slowBytes = 0
  let open = 0
  let at = start
  while (at < bytes.length && at - longBytes < limit) {
    switch (bytes[at]) {
      case quote: {
        const end = skipString(bytes, at)
        longBytes += Math.max(0, end - at - leastLong)
        at = end
        if (open === 0) return at
        break
      }
      case openBracket:
      case openBrace:
        open++
        at++
        break
      case closeBracket:
      case closeBrace:
        // The value was a number or a word. This bracket closes the list or the object that contains the
        // value.
        if (open === 0) return at
        at++
        if (--open === 0) return at
        break
      case comma:
        if (open === 0) return at
        at++
        break
      default:
        at++
    }
  }
  return at
}

/** Returns the place after a byte order mark, which isn't a part of JSON, or 0 if there is no such mark. */
export function startOf(bytes: Buffer): number {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
}
