import { minPartCharacters, minSecretCharacters } from './secret-texts.ts'
import { hasEscapes, unescaped } from './unescaped.ts'

/** So many first bytes of a secret are looked up. No text that counts as a secret is shorter. */
const headBytes = 6
/** So many bytes of a secret suffice where the text ends in the middle of it. */
const leastBrokenBytes = 4
/** A search for so few secrets is as fast without a look at the text. */
const few = 8
/** So many bytes of a secret are compared at most, from one place on. */
const mostBytes = 64
/** The most bytes that are compared for all secrets together. Then all others count as occurring. */
const mostCompared = 500_000

/**
 * Returns those secrets that may occur in a text: whole, a part of them, or a beginning of them at its end.
 * All others don't occur, however the text writes them. `withoutSecrets` takes long for thousands of secrets,
 * of which a text of some kilobytes has few. The time is proportional to the length of the text and of the
 * secrets.
 *
 * @param limit a secret has to begin before this byte of the text
 */
export function occurring(
  text: Uint8Array,
  secrets: readonly string[],
  limit = text.length,
): readonly string[] {
  if (secrets.length <= few) return secrets
  const texts = [new Places(text, limit)]
  if (hasEscapes(text)) {
    const { bytes, whole } = unescaped(text)
    texts.push(new Places(bytes.subarray(0, whole), limit))
  }
  return secrets.filter((secret) => secret.length >= minSecretCharacters && mayOccur(secret, texts))
}

function mayOccur(secret: string, texts: readonly Places[]): boolean {
  const utf8 = Buffer.from(secret)
  if (hasEscapes(utf8)) return true
  // A part may end at a character that is not ASCII. So only the beginnings of parts are known.
  if (/[^\x20-\x7e]/.test(secret)) {
    const forms = [utf8, Buffer.from(secret, 'latin1')]
    return forms.some((form) => texts.some((text) => beginsIn(text, form, () => leastBrokenBytes)))
  }
  return texts.some((text) => beginsIn(text, utf8, leastFrom))
}

/** Returns true if the text has the secret from one of its bytes on, for as long as `least` says. */
function beginsIn(
  text: Places,
  secret: Uint8Array,
  least: (secret: Uint8Array, at: number) => number,
): boolean {
  for (let at = 0; at + leastBrokenBytes <= secret.length; at++) {
    if (at > 0 && isOfWord(secret[at - 1])) continue
    const length = least(secret, at)
    if (length > 0 && text.has(secret, at, length)) return true
  }
  return false
}

/**
 * Returns the length of the shortest text that is looked for and begins at a byte of a secret: a part, or the
 * whole. Returns 0 if there is none. The length is `mostBytes` at most.
 */
function leastFrom(secret: Uint8Array, at: number): number {
  const most = Math.min(secret.length, at + mostBytes)
  let word = at
  while (word < most && isOfWord(secret[word])) word++
  if (word - at >= minPartCharacters) return word - at
  let token = word
  while (token < most && !endsToken.has(secret[token] ?? 0)) token++
  if (token - at >= minPartCharacters) return token - at
  return at === 0 ? most : 0
}

/** The characters between parts that tokens don't contain, as `secret-texts.ts` has them. */
const endsToken: ReadonlySet<number> = new Set(Buffer.from(' !"#$&\'()*,/:;<=>?@[\\]^`{|}'))

/** A factor for hashes. It is random, so nobody can choose texts whose places in the table are alike. */
const factor = Math.floor(Math.random() * 2 ** 31) * 2 + 1
const none = -1

/** Finds the places of a text at which some bytes begin, by a hash of the first of them. */
class Places {
  readonly #text: Uint8Array
  readonly #shift: number
  /** The last place for each part of the hashes, or `none`. */
  readonly #last: Int32Array
  /** For each place, the place before it with the same part of the hash, or `none`. */
  readonly #before: Int32Array
  #compared = 0

  constructor(text: Uint8Array, limit: number) {
    const end = Math.max(0, Math.min(limit, text.length - leastBrokenBytes + 1))
    const bits = 33 - Math.clz32(2 * end + 1)
    this.#text = text
    this.#shift = 32 - bits
    this.#last = new Int32Array(2 ** bits).fill(none)
    this.#before = new Int32Array(end)
    for (let at = 0; at < end; at++) {
      const slot = this.#slotOf(text, at, Math.min(headBytes, text.length - at))
      this.#before[at] = this.#last[slot] ?? none
      this.#last[slot] = at
    }
  }

  /** Returns true if the text has `length` bytes of a secret somewhere, or ends in the middle of them. */
  has(secret: Uint8Array, from: number, length: number): boolean {
    for (let head = leastBrokenBytes; head <= Math.min(headBytes, secret.length - from); head++) {
      let at = this.#last[this.#slotOf(secret, from, head)] ?? none
      for (; at !== none; at = this.#before[at] ?? none) if (this.#isAt(at, secret, from, length)) return true
    }
    return false
  }

  #isAt(at: number, secret: Uint8Array, from: number, length: number): boolean {
    const end = Math.min(length, this.#text.length - at)
    let place = 0
    while (place < end && lowerCase(this.#text[at + place]) === lowerCase(secret[from + place])) place++
    this.#compared += place + 1
    return place === end || this.#compared > mostCompared
  }

  /** The hash is FNV-1a. The case of ASCII letters makes no difference. */
  #slotOf(text: Uint8Array, at: number, length: number): number {
    let hash = 0x811c9dc5 ^ length
    for (let place = at; place < at + length; place++)
      hash = Math.imul(hash ^ lowerCase(text[place]), 0x01000193)
    return Math.imul(hash, factor) >>> this.#shift
  }
}

function lowerCase(byte = 0): number {
  return byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte
}

function isOfWord(byte = 0): boolean {
  return (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a)
}
