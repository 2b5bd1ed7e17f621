import { snakeCase } from 'change-case'

/**
 * The name of the property that tells of an audience or a computed trait: its key as it is, else its name in
 * snake_case. `docs/property-names.md` has the rules, and names that were given out may never change.
 * Letters, marks and digits of every script are kept, all else parts words; so do capitals, but no digit
 * does, and the plural of an acronym is one word. `undefined` where nothing is left.
 */
export function propertyName(named: {
  readonly key: string | undefined
  readonly name: string
}): string | undefined {
  const { key, name } = named
  if (key !== undefined) return key.trim() === '' ? undefined : key
  const known = madeNames.get(name)
  if (known !== undefined) return known
  const made = snakeCase(name.replace(variants, '').normalize('NFC'), { split: wordsOf, locale: false })
  if (made === '') return undefined
  if (madeNames.size >= maxMadeNames) madeNames.clear()
  // In lower case two characters may have become what is written as one.
  const normal = made.normalize('NFC')
  madeNames.set(name, normal)
  return normal
}

/** There are few names, and each comes with every change. */
const madeNames = new Map<string, string>()
const maxMadeNames = 1_000

/**
 * They choose how the character before them looks (an emoji in colour, a digit on a key), and are no part of
 * a word.
 */
const variants = /[\u{fe00}-\u{fe0f}\u{20e3}\u{e0100}-\u{e01ef}]/gu
const stretches = /[\p{L}\p{N}][\p{L}\p{M}\p{N}]*/gu
/** Where capitals say where words begin. A stretch with marks, or with other digits, is one word. */
const isPlain = /^[\p{L}\d]*$/u

/**
 * Where a word begins within a stretch: at a capital after a small letter, and at the last of several
 * capitals where small ones follow it, but not where those are the ending of a plural (`IDs`, `OSes`).
 * Capitals without a small form (𝐀) don't count: they would still be there in the property.
 */
const beginnings =
  /(?<=\p{Ll})(?=[\p{Lu}&&\p{CWL}])|(?<=[\p{Lu}&&\p{CWL}])(?!(?:\p{Lu}s|[SXZ]es)(?!\p{Ll}))(?=[\p{Lu}&&\p{CWL}]\p{Ll})/v

function wordsOf(text: string): string[] {
  return (text.match(stretches) ?? []).flatMap((stretch) =>
    isPlain.test(stretch) ? stretch.split(beginnings) : [stretch],
  )
}
