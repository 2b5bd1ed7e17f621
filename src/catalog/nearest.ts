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

/**
 * Returns how many characters to insert, delete or replace. Two neighbours that have changed places count as
 * one, because that is how people mistype (optimal string alignment).
 */
function editDistance(from: string, to: string): number {
  let before: number[] = []
  let row = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let line = 0; line < from.length; line++) {
    const next = [line + 1]
    for (let column = 1; column <= to.length; column++) {
      const replaced = (row[column - 1] ?? 0) + (from[line] === to[column - 1] ? 0 : 1)
      const isSwapped = from[line] === to[column - 2] && from[line - 1] === to[column - 1]
      const swapped = isSwapped ? (before[column - 2] ?? Infinity) + 1 : Infinity
      next.push(Math.min(replaced, swapped, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1))
    }
    before = row
    row = next
  }
  return row.at(-1) ?? 0
}
