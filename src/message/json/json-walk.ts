// Functions that walk over a JSON text without reading its values.

const quote = 0x22
const comma = 0x2c
const openBracket = 0x5b
const backslash = 0x5c
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

/** What matters in a string. */
const quoteOrBackslash = /["\\]/g
/** What ends a run of numbers, literals and commas. */
const quoteOrBracket = /["[\]{}]/g
/**
 * So many characters are looked at one by one, because most strings and runs are short, and a search has a
 * price. A search is several times as fast as a look at each character, if the text is a slice of another
 * one.
 */
const mostLookedAt = 16

/** Returns the position of the next character that `wanted` finds, or the end of the text. */
function searchFrom(text: string, start: number, wanted: RegExp): number {
  wanted.lastIndex = start
  return wanted.test(text) ? wanted.lastIndex - 1 : text.length
}

/**
 * Returns the position after the closing quote of the JSON string that begins at `start`, or the end of the
 * text.
 */
export function endOfString(text: string, start: number): number {
  let near = start + mostLookedAt
  for (let at = start + 1; at < text.length; at++) {
    if (at > near) {
      at = searchFrom(text, at, quoteOrBackslash)
      // Where escapes are close together, a search for each of them would cost more.
      near = at + mostLookedAt
    }
    const character = text.charCodeAt(at)
    if (character === quote) return at + 1
    if (character === backslash) at++
  }
  return text.length
}

/** Returns the position after the value that begins at `start`. The text must be canonical JSON. */
export function endOfValue(text: string, start: number): number {
  let open = 0
  let at = start
  while (at < text.length) {
    switch (text.charCodeAt(at)) {
      case quote:
        at = endOfString(text, at)
        if (open === 0) return at
        break
      case openBracket:
      case openBrace:
        open++
        at++
        break
      case closeBracket:
      case closeBrace:
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
        if (open > 0) at = endOfRun(text, at)
    }
  }
  return at
}

/** Returns the position of the next quotation mark or bracket, or the end of the text. */
function endOfRun(text: string, start: number): number {
  const near = Math.min(text.length, start + mostLookedAt)
  for (let at = start; at < near; at++) {
    if (isQuoteOrBracket(text.charCodeAt(at))) return at
  }
  return searchFrom(text, near, quoteOrBracket)
}

/** Returns true for a character of canonical JSON, outside of strings, that isn't part of a run. */
function isQuoteOrBracket(character: number): boolean {
  return (
    character === quote ||
    character === openBracket ||
    character === closeBracket ||
    character === openBrace ||
    character === closeBrace
  )
}

/**
 * Calls `visit` for each member of an object, or of the part of an object that has its members: the positions
 * of its key, its value and its end. Stops if `visit` returns true. The text must be canonical JSON.
 */
export function eachMember(
  text: string,
  start: number,
  visit: (keyStart: number, valueStart: number, end: number) => boolean | void,
): void {
  for (let at = start; text.charCodeAt(at) === quote;) {
    const valueStart = endOfString(text, at) + 1
    const end = endOfValue(text, valueStart)
    if (visit(at, valueStart, end) === true) return
    at = end + 1
  }
}
