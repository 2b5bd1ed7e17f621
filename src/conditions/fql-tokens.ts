/** A part of a text in Segment's filter language (FQL). `at`: its place, counted from 0. */
export type Token =
  | { readonly kind: 'text'; readonly value: string; readonly at: number }
  | { readonly kind: 'number'; readonly value: number; readonly at: number }
  | { readonly kind: 'name'; readonly value: string; readonly at: number }
  | { readonly kind: 'sign'; readonly value: string; readonly at: number }
  | { readonly kind: 'end'; readonly value: ''; readonly at: number }

/** A text that isn't FQL, or that conditions can't say. `at`: the place of the fault, counted from 0. */
export class FqlFault extends Error {
  readonly at: number

  constructor(message: string, at: number) {
    super(message)
    this.at = at
  }
}

const signs = ['!=', '<=', '>=', '=', '<', '>', '!', '(', ')', '[', ']', ',', '.'] as const

/** Returns the tokens of a text, with one of the kind `end` as the last. */
export function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = []
  let at = 0
  while (at < text.length) {
    const start = at
    const character = text.charAt(at)
    if (/\s/.test(character)) at++
    else if (character === '"' || character === "'") {
      const [value, end] = quoted(text, at)
      at = end
      tokens.push({ kind: 'text', value, at: start })
    } else if (/^-?\d/.test(text.slice(at, at + 2))) {
      const [digits = ''] = /^-?\d+(?:\.\d+)?/.exec(text.slice(at)) ?? []
      at += digits.length
      tokens.push({ kind: 'number', value: Number(digits), at: start })
    } else if (isNameCharacter(text, at)) {
      const [value, end] = named(text, at)
      at = end
      tokens.push({ kind: 'name', value, at: start })
    } else {
      const sign = signs.find((one) => text.startsWith(one, start))
      if (sign === undefined) throw new FqlFault(`${JSON.stringify(character)} has no meaning in FQL`, at)
      at += sign.length
      tokens.push({ kind: 'sign', value: sign, at: start })
    }
  }
  return [...tokens, { kind: 'end', value: '', at: text.length }]
}

/** Reads a text in quotes. In it, `\` stands before a quote or another `\`. */
function quoted(text: string, start: number): [value: string, end: number] {
  const quote = text.charAt(start)
  let value = ''
  for (let at = start + 1; at < text.length; at++) {
    const character = text.charAt(at)
    if (character === quote) return [value, at + 1]
    const next = text.charAt(at + 1)
    if (character === '\\' && (next === quote || next === '\\')) {
      value += next
      at++
    } else value += character
  }
  throw new FqlFault('a text has no closing quote', start)
}

/** Names have letters, digits, `_`, `-` and `$`. Any other character of a name has a `\` before it. */
function isNameCharacter(text: string, at: number): boolean {
  return /[\p{L}\p{N}_$-]/u.test(text.charAt(at)) || (text.charAt(at) === '\\' && at + 1 < text.length)
}

function named(text: string, start: number): [value: string, end: number] {
  let value = ''
  let at = start
  while (isNameCharacter(text, at)) {
    if (text.charAt(at) === '\\') at++
    value += text.charAt(at++)
  }
  return [value, at]
}
