import { isUtf8 } from 'node:buffer'
import { SecretMatcher } from './secret-matcher.ts'
import { minSecretCharacters, withParts } from './secret-texts.ts'
import { hasEscapes, unescaped } from './unescaped.ts'

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
 * in the middle of a secret, the beginning of that secret is replaced too. The result is valid UTF-8.
 *
 * `secrets`: a list that is used for many texts. What is computed from the list is kept for the next text.
 * `more`: secrets of this text only. The time is proportional to the length of the text and of `more`.
 */
export function withoutSecrets(
  text: Uint8Array,
  secrets: readonly string[],
  more: readonly string[] = [],
): Buffer {
  const search = new Search(Buffer.from(text.buffer, text.byteOffset, text.length))
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

/** A search for secrets in a text, and in the text without its escapes. */
class Search {
  readonly #text: Buffer
  readonly #plain: ReturnType<typeof unescaped> | undefined
  /** For each byte, the length of the longest secret that ends there, or 0. */
  readonly #reach: Uint16Array
  /** The place from which on the text is the beginning of a secret. */
  #brokenFrom: number

  constructor(text: Buffer) {
    this.#text = text
    this.#plain = hasEscapes(text) ? unescaped(text) : undefined
    this.#reach = new Uint16Array(text.length)
    this.#brokenFrom = text.length
  }

  find(matcher: SecretMatcher): void {
    const broken = matcher.find(this.#text, this.#reach)
    if (broken >= minBrokenBytes) this.#breakFrom(this.#text.length - broken)
    if (this.#plain !== undefined) this.#findPlain(matcher, this.#plain)
  }

  #findPlain(matcher: SecretMatcher, { bytes, ends, whole }: ReturnType<typeof unescaped>): void {
    const reach = new Uint16Array(whole)
    const broken = matcher.find(bytes.subarray(0, whole), reach)
    const startOf = (at: number): number => (at === 0 ? 0 : (ends[at - 1] ?? 0))
    if (broken >= minBrokenBytes) this.#breakFrom(startOf(whole - broken))
    for (let at = 0; at < whole; at++) {
      const found = reach[at] ?? 0
      if (found === 0) continue
      const end = ends[at] ?? 0
      const length = end - startOf(at + 1 - found)
      if (length > (this.#reach[end - 1] ?? 0)) this.#reach[end - 1] = length
    }
  }

  #breakFrom(place: number): void {
    this.#brokenFrom = Math.min(this.#brokenFrom, place)
  }

  /** Returns the text with a mask in place of what was found. Secrets that overlap or touch share a mask. */
  masked(): Buffer {
    const text = this.#text
    // The text is written from its end. A mask takes the place of at least `minBrokenBytes`.
    const room = Buffer.allocUnsafe(2 * (text.length + mask.length))
    let place = room.length
    let hiddenFrom = this.#brokenFrom
    let isHidden = false
    for (let at = text.length - 1; at >= 0; at--) {
      const found = this.#reach[at] ?? 0
      if (found > 0) hiddenFrom = Math.min(hiddenFrom, at + 1 - found)
      if (at < hiddenFrom) room[--place] = text[at] ?? 0
      else if (!isHidden) {
        place -= mask.length
        room.set(mask, place)
      }
      isHidden = at >= hiddenFrom
    }
    return room.subarray(place)
  }
}

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
  const utf8 = Buffer.from(secret).subarray(0, maxSecretBytes)
  const forms: Uint8Array[] = [utf8]
  // Headers are sent in Latin-1.
  if (utf8.length > secret.length && !/[^\0-\xff]/.test(secret)) forms.push(Buffer.from(secret, 'latin1'))
  if (hasEscapes(utf8)) forms.push(unescaped(utf8).bytes)
  return forms.filter(({ length }) => length >= minSecretCharacters)
}
