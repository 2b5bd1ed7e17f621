import { isUtf8 } from 'node:buffer'
import { Found } from './found.ts'
import { SecretMatcher } from './secret-matcher.ts'
import { minSecretCharacters, withParts } from './secret-texts.ts'
import { hasEscapes, type Unescaped, unescaped } from './unescaped.ts'

/** Limit on the bytes that count of a secret. No answer is longer than this. */
const maxSecretBytes = 16 * 1024
/**
 * A body can end in the middle of a secret. Such a secret is recognized only if the body contains at least
 * this number of its bytes.
 */
const minBrokenBytes = 4
const mask = Buffer.from('[redacted]')

/**
 * Replaces secrets in a UTF-8 text, and the parts of secrets that look like tokens, with a mask. They may be
 * escaped in the ways that `unescaped` undoes, and the case of ASCII letters doesn't matter. If the text ends
 * in the middle of a secret, the beginning of that secret is replaced too. Returns what becomes of the bytes
 * before `limit`, in valid UTF-8. The text after them is only read to recognize secrets.
 *
 * `secrets`: a list that is used for many texts. What is computed from the list is kept for the next text.
 * `more`: secrets of this text only. The time is proportional to the length of the text and of `more`.
 */
export function withoutSecrets(
  text: Uint8Array,
  secrets: readonly string[],
  more: readonly string[] = [],
  limit: number = text.length,
): Buffer {
  const search = new Search(text, limit)
  search.find(known.of(secrets))
  if (more.length > 0) search.find(matcherOf(more))
  const masked = search.masked()
  return isUtf8(masked) ? masked : Buffer.from(masked.toString('utf8'))
}

/** Does the same for one text. */
export function textWithoutSecrets(text: string, secrets: readonly string[]): string {
  return withoutSecrets(Buffer.from(text), noSecrets, secrets).toString('utf8')
}

const noSecrets: readonly string[] = []

/** A search for the secrets that begin in the first bytes of a text. */
class Search {
  /** The text. It isn't a Buffer, because V8 is slower if a loop gets objects of two classes. */
  readonly #text: Uint8Array
  readonly #limit: number
  readonly #found: Found
  readonly #plain: Unescaped | undefined
  readonly #foundPlain: Found

  constructor({ buffer, byteOffset, length }: Uint8Array, limit: number) {
    this.#text = new Uint8Array(buffer, byteOffset, length)
    this.#limit = limit
    this.#found = new Found(length)
    this.#plain = hasEscapes(this.#text) ? unescaped(this.#text) : undefined
    this.#foundPlain = new Found(this.#plain?.whole ?? 0)
  }

  find(matcher: SecretMatcher): void {
    const { length } = this.#text
    const broken = matcher.find(this.#text, this.#limit, this.#found)
    if (broken >= minBrokenBytes) this.#found.add(length, broken)
    if (this.#plain === undefined) return
    const { bytes, ends, whole } = this.#plain
    // No escape is shorter than its character, so these are enough bytes.
    const brokenPlain = matcher.find(bytes.subarray(0, whole), this.#limit, this.#foundPlain)
    if (brokenPlain >= minBrokenBytes) this.#found.add(length, length - placeOf(whole - brokenPlain, ends))
  }

  /** Returns the first bytes of the text, with a mask in place of what was found. */
  masked(): Buffer {
    for (const { start, end } of this.#foundPlain.ranges()) {
      const place = placeOf(end, this.#plain?.ends)
      this.#found.add(place, place - placeOf(start, this.#plain?.ends))
    }
    const ranges = this.#found.ranges().filter(({ start }) => start < this.#limit)
    if (ranges.length === 0) return Buffer.from(this.#text.subarray(0, this.#limit))
    const masked = Buffer.allocUnsafe(this.#limit + ranges.length * mask.length)
    // The bytes are written from the last to the first.
    let place = masked.length
    let at = Math.min(this.#limit, this.#text.length)
    const writeFrom = (start: number): void => {
      while (at > start) masked[--place] = this.#text[--at] ?? 0
    }
    for (const { start, end } of ranges) {
      writeFrom(end)
      place -= mask.length
      masked.set(mask, place)
      at = start
    }
    writeFrom(0)
    return masked.subarray(place)
  }
}

/** Returns the place in a text with escapes that is before the byte `at` of the text without them. */
function placeOf(at: number, ends: Uint32Array = noEnds): number {
  return at === 0 ? 0 : (ends[at - 1] ?? 0)
}

const noEnds = new Uint32Array()

/** Limit on the nodes of the matchers that are kept, which take ten bytes each. The limit counts twice. */
const mostNodes = 2 ** 21

/** Keeps the matchers of the lists that were used last. */
class KnownMatchers {
  #recent = new Map<readonly string[], SecretMatcher>()
  #before = new Map<readonly string[], SecretMatcher>()
  #nodes = 0

  of(secrets: readonly string[]): SecretMatcher {
    const recent = this.#recent.get(secrets)
    if (recent !== undefined) return recent
    const matcher = this.#before.get(secrets) ?? matcherOf(secrets)
    if (this.#nodes > mostNodes) {
      this.#before = this.#recent
      this.#recent = new Map()
      this.#nodes = 0
    }
    this.#recent.set(secrets, matcher)
    this.#nodes += matcher.size
    return matcher
  }
}

const known = new KnownMatchers()

function matcherOf(secrets: readonly string[]): SecretMatcher {
  return new SecretMatcher(withParts(secrets).flatMap(formsOf))
}

/** Returns a secret in UTF-8, in Latin-1 if it differs, and without its escapes. */
function formsOf(secret: string): Uint8Array[] {
  const utf8 = new Uint8Array(Buffer.from(secret)).subarray(0, maxSecretBytes)
  const forms: Uint8Array[] = [utf8]
  // Headers are sent in Latin-1.
  if (utf8.length > secret.length && !/[^\0-\xff]/.test(secret))
    forms.push(new Uint8Array(Buffer.from(secret, 'latin1')))
  if (hasEscapes(utf8)) forms.push(unescaped(utf8).bytes)
  return forms.filter(({ length }) => length >= minSecretCharacters)
}
