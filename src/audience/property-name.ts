import { snakeCase } from 'change-case'

/**
 * Returns the name of the property for an audience or a computed trait: its key unchanged, or else its name
 * in snake_case. `undefined` if no character remains. `docs/property-names.md` has the rules. A name that was
 * ever given out must never change. Letters, marks and digits of every script are kept, and every other
 * character separates words. A capital starts a new word, but a digit doesn't, and the plural of an acronym
 * is one word.
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
  // In lower case, two characters may have become a pair that NFC writes as one.
  const normal = made.normalize('NFC')
  madeNames.set(name, normal)
  return normal
}

/** The property names that were made already, by name. There are few, and each change needs one. */
const madeNames = new Map<string, string>()
const maxMadeNames = 1_000

/**
 * Characters that only choose how the character before them looks (an emoji in colour, a digit on a key).
 * They are no part of a word.
 */
const variants = /[\u{fe00}-\u{fe0f}\u{20e3}\u{e0100}-\u{e01ef}]/gu
const stretches = /[\p{L}\p{N}][\p{L}\p{M}\p{N}]*/gu
/**
 * A stretch in which capitals show where words begin. A stretch with marks, or with other digits, is one
 * word.
 */
const isPlain = /^[\p{L}\d]*$/u

/**
 * The places within a stretch where a word begins: at a capital after a small letter, and at the last capital
 * of several if small letters follow. The ending of a plural (`IDs`, `OSes`) doesn't count as small letters.
 * Capitals without a small form (𝐀) don't begin a word, since lower case would not change them.
 */
const beginnings =
  /(?<=\p{Ll})(?=[\p{Lu}&&\p{CWL}])|(?<=[\p{Lu}&&\p{CWL}])(?!(?:\p{Lu}s|[SXZ]es)(?!\p{Ll}))(?=[\p{Lu}&&\p{CWL}]\p{Ll})/v

function wordsOf(text: string): string[] {
  return (text.match(stretches) ?? []).flatMap((stretch) =>
    isPlain.test(stretch) ? stretch.split(beginnings) : [stretch],
  )
}
