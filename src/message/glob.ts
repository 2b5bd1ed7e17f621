/**
 * Returns a function that tells whether a text has the form of a pattern. `*` stands for any number of
 * characters, also for none. `\*` stands for the character itself. All other characters, also `?` and `[`,
 * stand for themselves. A text of n characters costs at most as much as it has characters times those of the
 * pattern. There is no backtracking, because each part between two `*` is taken at its first place.
 */
export function globOf(pattern: string): (text: string) => boolean {
  const [first = '', ...others] = partsOf(pattern)
  const last = others.pop()
  if (last === undefined) return (text) => text === first
  if (others.length === 0)
    return (text) =>
      text.length >= first.length + last.length && text.startsWith(first) && text.endsWith(last)
  return (text) => {
    const end = text.length - last.length
    if (end < first.length || !text.startsWith(first) || !text.endsWith(last)) return false
    let at = first.length
    for (const part of others) {
      const found = text.indexOf(part, at)
      if (found === -1) return false
      at = found + part.length
    }
    return at <= end
  }
}

/** Returns true if the pattern has a `*` that stands for other characters. */
export function isGlob(pattern: string): boolean {
  return pattern.includes('*')
}

/** Returns the parts of a pattern between its `*`, as they are to be found in a text. */
function partsOf(pattern: string): string[] {
  const parts: string[] = []
  let part = ''
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern.charAt(at)
    if (character === '\\' && pattern[at + 1] === '*') part += pattern.charAt(++at)
    else if (character === '*') {
      parts.push(part)
      part = ''
    } else part += character
  }
  return [...parts, part]
}
