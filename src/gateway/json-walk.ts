const quote = 0x22
const backslash = 0x5c

/**
 * Returns the position after the closing quote of the JSON string that begins at `start`, or the end of the
 * text.
 */
export function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const character = text.charCodeAt(at)
    if (character === quote) return at + 1
    if (character === backslash) at++
  }
  return text.length
}
