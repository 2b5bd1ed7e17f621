/**
 * Returns the candidate that is spelled most like `text`. Returns `undefined` if no candidate is close enough
 * to be meant.
 */
export function nearest(text: string, candidates: readonly string[]): string | undefined {
  // Of a short word, at most a third may differ: otherwise `foo` would be like `log`.
  const limit = Math.min(Math.ceil(text.length / 3), Math.max(2, Math.floor(text.length / 4)))
  let best: string | undefined
  let bestDistance = limit + 1
  for (const candidate of candidates) {
    // The distance is at least the difference of the lengths. A key of a stranger may be very long.
    if (Math.abs(text.length - candidate.length) > limit) continue
    const distance = editDistance(text, candidate)
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance]
  }
  return best
}

/** Returns the Levenshtein distance: how many characters to insert, delete or replace. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let line = 0; line < from.length; line++) {
    const next = [line + 1]
    for (let column = 1; column <= to.length; column++) {
      const replaced = (row[column - 1] ?? 0) + (from[line] === to[column - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
