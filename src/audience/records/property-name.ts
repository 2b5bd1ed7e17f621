import { snakeCase } from 'change-case'

/**
 * Returns the name of the property of an audience or a computed trait. The name is the key of the audience or
 * trait, unchanged. If there is no key, the property name is made from the display name, in snake_case.
 * Returns `undefined` if no character remains. `docs/property-names.md` has the rules. A property name that
 * Sluice has ever used must never change. Letters, combining marks and digits of every script are kept, and
 * all other characters separate words. A capital starts a new word. A digit doesn't start a new word. The
 * plural of an acronym is one word.
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
  // After the change to lower case, NFC may write two characters as one.
  const normal = made.normalize('NFC')
  madeNames.set(name, normal)
  return normal
}

/**
 * The property names that were made so far, by display name. There are few names, and each change needs one.
 */
const madeNames = new Map<string, string>()
const maxMadeNames = 1_000

/**
 * Characters that only change how the character before them looks (an emoji in colour, a digit as a keycap).
 * They aren't part of a word.
 */
const variants = /[\u{fe00}-\u{fe0f}\u{20e3}\u{e0100}-\u{e01ef}]/gu
const stretches = /[\p{L}\p{N}][\p{L}\p{M}\p{N}]*/gu
/**
 * Matches a text in which capitals show where words begin. A text with combining marks, or with digits other
 * than 0 to 9, doesn't match, and is one word.
 */
const isPlain = /^[\p{L}\d]*$/u

/**
 * Matches the places within a text where a word begins: at a capital after a small letter, and at the last of
 * several capitals if small letters follow. The ending of a plural (`IDs`, `OSes`) doesn't count as small
 * letters. A capital without a small form (𝐀) doesn't begin a word, because the change to lower case would
 * not change it.
 */
const beginnings =
  /(?<=\p{Ll})(?=[\p{Lu}&&\p{CWL}])|(?<=[\p{Lu}&&\p{CWL}])(?!(?:\p{Lu}s|[SXZ]es)(?!\p{Ll}))(?=[\p{Lu}&&\p{CWL}]\p{Ll})/v

function wordsOf(text: string): string[] {
  return (text.match(stretches) ?? []).flatMap((stretch) =>
    isPlain.test(stretch) ? stretch.split(beginnings) : [stretch],
  )
}
