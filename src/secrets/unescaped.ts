/** A text without its escapes. */
export type Unescaped = {
  readonly bytes: Uint8Array
  /** For each byte, the place in the original text after the character or escape that it comes from. */
  readonly ends: Uint32Array
  /** The number of bytes before an escape that the end of the text cuts off. Otherwise that of all bytes. */
  readonly whole: number
}

/**
 * Undoes the ways in which servers usually write a text into an answer: percent-encoding, the escapes of JSON
 * and of similar notations (`\/`, `\u003d`, `\x3d`), and those of HTML (`&amp;`, `&#61;`, `&#x3d;`). Leaves
 * zero bytes out, which turns ASCII characters in UTF-16 into UTF-8. Texts are bytes in UTF-8. The time is
 * proportional to the length of the text.
 */
export function unescaped(text: Uint8Array): Unescaped {
  return new Unescaper(text).run()
}

const sign = {
  percent: 0x25,
  ampersand: 0x26,
  backslash: 0x5c,
  hash: 0x23,
  semicolon: 0x3b,
  u: 0x75,
  x: 0x78,
} as const

/** Results instead of a character: there is no escape, or the end of the text cuts it off. */
const noEscape = -1
const cut = -2

/** The value of each hex digit, and -1 for each byte that is none. */
const digits = new Int8Array(256).fill(-1)
for (let value = 0; value < 16; value++)
  for (const digit of [value.toString(16), value.toString(16).toUpperCase()])
    digits[digit.charCodeAt(0)] = value

/** The character for each character after a backslash, except for `u` and `x`. */
const afterBackslash = Uint8Array.from({ length: 256 }, (_, byte) => byte)
for (const [letter, control] of Object.entries({ b: 8, t: 9, n: 10, f: 12, r: 13 }))
  afterBackslash[letter.charCodeAt(0)] = control

/** The characters that have a name in HTML, by the key of the name. */
const named = new Map(
  Object.entries({ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", sol: '/', equals: '=' }).map(
    ([name, character]) => [Buffer.from(name).reduce(keyWith, 0), character.charCodeAt(0)],
  ),
)
const longestName = 6
/**
 * The most digits of a numbered character, and the length of the longest escape of HTML: `&#x`, digits, `;`.
 */
const mostDigits = 7
const longestNumbered = 3 + mostDigits + 1

/** Returns the key of a name with one more letter. `letter`: a byte from `a` to `z`. */
function keyWith(key: number, letter: number): number {
  return key * 32 + letter - 0x60
}

/** The bytes that begin an escape, with a bit for each kind of escape. */
const begins = new Uint8Array(256)
begins[sign.percent] = 1
begins[sign.ampersand] = 2
begins[sign.backslash] = 4
begins[0] = 8
/** The bits of the kinds of escapes in which a byte, or the end of the text, can come second. */
const textEnd = 256
const follows = Uint8Array.from({ length: 257 }, (_, byte) => ((digits[byte] ?? -1) < 0 ? 12 : 13))
follows[textEnd] = 15
for (let byte = 0; byte < 256; byte++)
  if (byte === sign.hash || isLetter(byte)) follows[byte] = (follows[byte] ?? 0) | 2

function isLetter(byte: number): boolean {
  return byte >= 0x61 && byte <= 0x7a
}

/**
 * Returns true if the `&` at a place certainly begins no escape, though a letter or a `#` comes after it.
 * Without this look, many of them would cost three times as much as other bytes.
 */
function isPlainAmpersand(text: Uint8Array, at: number): boolean {
  if (at + longestNumbered >= text.length) return false
  const ends = sign.semicolon
  if (text[at + 1] === sign.hash) {
    const from = ((text[at + 2] ?? 0) | 0x20) === sign.x ? at + 3 : at + 2
    let end = from
    while (end < from + mostDigits && (digits[text[end] ?? 0] ?? -1) >= 0) end++
    return end === from || text[end] !== ends
  }
  // A name has two to four letters, or six.
  return text[at + 3] !== ends && text[at + 4] !== ends && text[at + 5] !== ends && text[at + 7] !== ends
}

/** Returns true if `unescaped` may change a text. */
export function hasEscapes(text: Uint8Array): boolean {
  return [sign.percent, sign.ampersand, sign.backslash, 0].some((byte) => text.includes(byte))
}

class Unescaper {
  readonly #text: Uint8Array
  readonly #bytes: Uint8Array
  readonly #ends: Uint32Array
  /** The place of the next byte to read, and the number of bytes written so far. */
  #at = 0
  #size = 0
  #whole: number | undefined

  constructor(text: Uint8Array) {
    this.#text = text
    // No escape is shorter than its character.
    this.#bytes = new Uint8Array(text.length)
    this.#ends = new Uint32Array(text.length)
  }

  run(): Unescaped {
    while (this.#at < this.#text.length) {
      this.#copyPlain()
      if (this.#at < this.#text.length) this.#step(this.#byteAt(0))
    }
    return { bytes: this.#bytes.subarray(0, this.#size), ends: this.#ends, whole: this.#whole ?? this.#size }
  }

  /** Copies the bytes before the next escape. A byte that looks like the beginning of one ends this too. */
  #copyPlain(): void {
    const text = this.#text
    const bytes = this.#bytes
    const ends = this.#ends
    let at = this.#at
    let size = this.#size
    for (; at < text.length; size++) {
      const byte = text[at] ?? 0
      const kind = begins[byte] ?? 0
      if (kind !== 0 && (kind & (follows[text[at + 1] ?? textEnd] ?? 0)) !== 0) {
        if (byte !== sign.ampersand || !isPlainAmpersand(text, at)) break
      }
      bytes[size] = byte
      ends[size] = ++at
    }
    this.#at = at
    this.#size = size
  }

  #step(byte: number): void {
    if (byte === sign.percent) this.#putByte(this.#hex(1, 2), 3)
    else if (byte === sign.backslash) this.#backslash(this.#byteAt(1))
    else if (byte === sign.ampersand) this.#ampersand(this.#byteAt(1))
    else this.#at++
  }

  #backslash(next: number): void {
    if (next === sign.u) this.#unit(this.#hex(2, 4))
    else if (next === sign.x) this.#putByte(this.#hex(2, 2), 4)
    else this.#putByte(afterBackslash[next] ?? cut, 2)
  }

  /** Takes `\u003d`, or two such escapes if UTF-16 encodes the character in two units. */
  #unit(unit: number): void {
    const mayBePair = unit >= 0xd800 && unit < 0xdc00
    const isPair = mayBePair && this.#byteAt(6) === sign.backslash && this.#byteAt(7) === sign.u
    const second = isPair ? this.#hex(8, 4) : noEscape
    if (second < 0xdc00 || second > 0xdfff) this.#putCode(unit, 6)
    else this.#putCode(0x10000 + (unit - 0xd800) * 0x400 + second - 0xdc00, 12)
  }

  #ampersand(next: number): void {
    if (next !== sign.hash) this.#named()
    else if ((this.#byteAt(2) | 0x20) === sign.x) this.#numbered(3, 16)
    else this.#numbered(2, 10)
  }

  /** Takes `&amp;`. */
  #named(): void {
    let key = 0
    for (let length = 1; length <= longestName + 1; length++) {
      const byte = this.#byteAt(length)
      if (byte === cut || byte === sign.semicolon) {
        this.#putByte(byte === cut ? cut : (named.get(key) ?? noEscape), length + 1)
        return
      }
      if (!isLetter(byte)) break
      key = keyWith(key, byte)
    }
    this.#putByte(noEscape, 1)
  }

  /** Takes `&#61;` or `&#x3d;`. The digits begin `from` bytes after the `&`. */
  #numbered(from: number, base: number): void {
    let code = 0
    let length = from
    for (; length < from + mostDigits; length++) {
      const digit = digits[this.#byteAt(length)] ?? -1
      if (digit < 0 || digit >= base) break
      code = code * base + digit
    }
    const end = this.#byteAt(length)
    const isNumber = length > from && end === sign.semicolon && code <= 0x10ffff
    this.#putCode(isNumber ? code : end === cut ? cut : noEscape, length + 1)
  }

  /** Returns the byte at a distance from the present place, or `cut` if the text ends before it. */
  #byteAt(distance: number): number {
    return this.#text[this.#at + distance] ?? cut
  }

  #hex(from: number, count: number): number {
    let number = 0
    for (let distance = from; distance < from + count; distance++) {
      const byte = this.#byteAt(distance)
      const digit = digits[byte] ?? -1
      if (digit < 0) return byte === cut ? cut : noEscape
      number = number * 16 + digit
    }
    return number
  }

  /** Writes a byte for the next `length` bytes of the text, or the next byte of the text if it is none. */
  #putByte(byte: number, length: number): void {
    if (byte === cut) this.#whole ??= this.#size
    this.#bytes[this.#size] = byte < 0 ? this.#byteAt(0) : byte
    this.#at += byte < 0 ? 1 : length
    this.#ends[this.#size++] = this.#at
  }

  /** Does the same as `putByte` with a character, by its code point. */
  #putCode(code: number, length: number): void {
    if (code < 0x80) {
      this.#putByte(code, length)
      return
    }
    const from = this.#size
    const more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3
    this.#bytes[this.#size++] = ((0xff00 >> (more + 1)) & 0xff) | (code >> (6 * more))
    for (let left = more - 1; left >= 0; left--)
      this.#bytes[this.#size++] = 0x80 | ((code >> (6 * left)) & 0x3f)
    this.#at += length
    this.#ends.fill(this.#at, from, this.#size)
  }
}
