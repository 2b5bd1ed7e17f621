/** Counts words as `wc -w` does. */
export function wordCount(text: string): number {
  return text.split(/\s+/).filter((word) => word !== '').length
}

/** A class and the lines from its head to its end. */
export type LongestClass = { readonly file: string; readonly name: string; readonly lines: number }

/**
 * Finds the longest class of a file. Expects the formatter's layout: a class ends at the first `}` in column
 * 1.
 */
export function longestClass(file: string, text: string): LongestClass | undefined {
  return [...text.matchAll(/^(?:export )?(?:abstract )?class (\w+)[\s\S]*?^}/gm)]
    .map(([body, name = '']) => ({ file, name, lines: body.split('\n').length }))
    .toSorted((a, b) => b.lines - a.lines)[0]
}

/**
 * Words that are neither a verb nor the beginning of a noun phrase. If a docblock begins with one of them,
 * the reader learns only later what it is about, and has to read it twice.
 */
const unclearOpeners = new Set(
  (
    'what whatever of or where who whom whose whoever whether when while how why which that those these this ' +
    'it its they them their he so as such both all none nothing nobody one ones other others some ' +
    'by with without within behind beyond below above before after since until for from to in on at into ' +
    'beside besides between but and not too also still only if false true like about'
  ).split(' '),
)

/**
 * Counts the docblocks of some files. `share` is the part of them, 0 to 1, that opens with a verb or a noun
 * phrase.
 */
export function openerShare(texts: readonly string[]): { count: number; share: number } {
  const openers = texts.flatMap((text) =>
    [...text.matchAll(/\/\*\*[\s*]*([A-Za-z']+|[^\s*])/g)].map(([, word = '']) => word.toLowerCase()),
  )
  const clear = openers.filter((word) => !unclearOpeners.has(word))
  return { count: openers.length, share: openers.length === 0 ? 1 : clear.length / openers.length }
}
