import { snakeCase, split } from 'change-case'

/**
 * The name of the property that tells of an audience or a computed trait: its key as it is, else its name in snake_case.
 * Digits stay with their word (`order_completed_last_30days`); letters, marks and digits of every script are kept, all
 * else parts words. `undefined` where nothing is left.
 */
export function propertyName(named: {
  readonly key: string | undefined
  readonly name: string
}): string | undefined {
  const { key, name } = named
  if (key !== undefined) return key.trim() === '' ? undefined : key
  const known = madeNames.get(name)
  if (known !== undefined) return known
  const made = snakeCase(name.normalize('NFC').replace(variants, ''), { split: wordsOf, locale: false })
  if (made === '') return undefined
  if (madeNames.size >= maxMadeNames) madeNames.clear()
  madeNames.set(name, made)
  return made
}

/** There are few names, and each comes with every change. */
const madeNames = new Map<string, string>()
const maxMadeNames = 1_000

/** They choose how the character before them looks (an emoji in colour, a digit on a key), and are no part of a word. */
const variants = /[\u{fe00}-\u{fe0f}\u{20e3}\u{e0100}-\u{e01ef}]/gu
const stretches = /[\p{L}\p{N}][\p{L}\p{M}\p{N}]*/gu
/** What the library knows: letters without marks, and the digits of ASCII. It takes all else for what parts words. */
const isPlain = /^[\p{L}\d]*$/u

function wordsOf(text: string): string[] {
  return (text.match(stretches) ?? []).flatMap((stretch) =>
    isPlain.test(stretch) ? split(stretch) : [stretch],
  )
}
