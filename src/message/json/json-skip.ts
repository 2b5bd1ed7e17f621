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

/**
 * Returns the place after the closing quote of the string that begins at `start`, or the end of the bytes.
 */
export function skipString(bytes: Buffer, start: number): number {
  for (let at = start + 1; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === quote) return at + 1
    if (byte === backslash) at++
  }
  return bytes.length
}

/**
 * Returns the place after the value that begins at `start`. The result is right only if the bytes are valid
 * JSON. Reads each byte once. If the value doesn't end before `limit`, returns `limit` or a later place.
 */
export function skipValue(bytes: Buffer, start: number, limit: number = bytes.length): number {
  let open = 0
  let at = start
  while (at < limit) {
    switch (bytes[at]) {
      case quote:
        at = skipString(bytes, at)
        if (open === 0) return at
        break
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
