import { hashFactor, hashSeed } from '../../src/message/json/json-bytes.ts'
import type { Random } from '../../test/support/random.ts'

/** A piece of JSON that should be expensive. Each call may return another text. */
export type Piece = { readonly name: string; readonly make: (random: Random) => string }

/** A key that no text had before. V8 makes a hidden class for each new order of keys. */
function freshKey(random: Random): string {
  return `q${random.below(2 ** 31).toString(36)}`
}

function piece(name: string, make: string | ((random: Random) => string)): Piece {
  return { name, make: typeof make === 'string' ? () => make : make }
}

const scattering = 2_654_435_761

/** Values that should be expensive to read, to check or to write. */
export const values: readonly Piece[] = [
  piece('{}', '{}'),
  piece('[]', '[]'),
  piece('1', '1'),
  piece('null', 'null'),
  piece('1.0', '1.0'),
  piece('1e999', '1e999'),
  piece('1e20', '1e20'),
  piece('-0', '-0'),
  piece('NaN', 'NaN'),
  piece('a number of 17 digits', (random) => `1234567890123${1_000 + random.below(9_000)}`),
  piece('a number of 300 digits', '9'.repeat(300)),
  piece('a denormal number', (random) => `${1 + random.below(9_999)}e-320`),
  piece('a number near the smallest double', (random) => `${1 + random.below(99)}e-323`),
  piece('a number near the largest double', (random) => `${1 + random.below(8)}e308`),
  piece('a fraction of 17 digits', (random) => `0.1234567890123${1_000 + random.below(9_000)}`),
  piece('"\\u0041"', '"\\u0041"'),
  piece('a lone surrogate', '"\\ud800"'),
  piece('"\\\\"', '"\\\\"'),
  piece('characters above ASCII', '"漢漢漢"'),
  piece('a key \\', '{"\\\\":1}'),
  piece('a key \\n', '{"\\n":1}'),
  piece('a fresh key', (random) => `{"${freshKey(random)}":1}`),
  piece('a fresh key with an escape', (random) => `{"\\\\${freshKey(random)}":1}`),
  piece('a repeated key', '{"a":1,"a":2}'),
  piece('keys out of order', '{"a":1,"0":2}'),
  piece('an index', (random) => `{"${random.below(2 ** 31)}":1}`),
  piece('__proto__', '{"__proto__":{}}'),
  piece('a key writeKey', '{"writeKey":"a"}'),
  piece('60 levels of lists', `${'['.repeat(60)}${']'.repeat(60)}`),
  piece('60 levels of objects', `${'{"a":'.repeat(60)}1${'}'.repeat(60)}`),
  piece('90 levels of objects out of order', `${'{"a":1,"0":'.repeat(90)}1${'}'.repeat(90)}`),
  piece('a space', ' 1 '),
  piece('a text of 1 KB', `"${'x'.repeat(1_000)}"`),
  piece('escapes', `"${'\\n'.repeat(100)}"`),
  piece('a text of é in escapes', `"${'\\u00e9'.repeat(5_000)}"`),
  piece('a text of lone surrogates', `"${'\\ud800'.repeat(5_000)}"`),
  piece('a text of pairs in escapes', `"${'\\ud83d\\ude00'.repeat(2_500)}"`),
  piece('a text of slashes in escapes', `"${'\\/'.repeat(15_000)}"`),
  piece('a text of quotation marks', `"${'\\"'.repeat(15_000)}"`),
  piece('a text of 30 KB in 90 levels out of order', inLevels(`"${'x'.repeat(30_000)}"`)),
  piece('a text of 120 KB in 90 levels out of order', inLevels(`"${'x'.repeat(120_000)}"`)),
  piece('a control character', '"\\u0001"'),
  piece('a whole number in an exponent', '1e5'),
  piece('a fraction with a zero', '1.50'),
  piece('an object of 250 keys', objectOf(Array.from({ length: 250 }, (_, at) => `"${at.toString(36)}k":1`))),
  piece('keys with one hash', objectOf(keysOfOneHash().map((key) => `"${key}":1`))),
]

function objectOf(of: readonly string[]): string {
  return `{${of.join(',')}}`
}

/** Returns a value in 90 objects, each of whose members JSON.parse puts in another order. */
function inLevels(value: string): string {
  return `${'{"a":1,"0":'.repeat(90)}${value}${'}'.repeat(90)}`
}

/** Returns 256 keys that have the same hash: each of 8 pairs of parts leads from one hash to one hash. */
function keysOfOneHash(): readonly string[] {
  let keys = ['']
  let hash = hashSeed
  for (let pair = 0; pair < 8; pair++) {
    const seen = new Map<number, string>()
    for (let number = 1; ; number++) {
      // The texts are far apart. Those of neighbouring numbers would hardly ever have the same hash.
      const part = `k${((number * scattering) % 2 ** 40).toString(36)}`
      const next = hashFrom(hash, part)
      const other = seen.get(next)
      if (other !== undefined) {
        keys = keys.flatMap((key) => [key + part, key + other])
        hash = next
        break
      }
      seen.set(next, part)
    }
  }
  return keys
}

function hashFrom(hash: number, text: string): number {
  let next = hash
  for (let at = 0; at < text.length; at++) next = Math.imul(next ^ text.charCodeAt(at), hashFactor)
  return next
}

/** Members that should be expensive in a large object. */
export const members: readonly Piece[] = [
  piece('a key', '"a":1'),
  piece('a fresh key', (random) => `"${freshKey(random)}":1`),
  piece('a fresh key \\', (random) => `"\\\\${freshKey(random)}":1`),
  piece('an index', (random) => `"${random.below(2 ** 31)}":1`),
  piece('a small index', (random) => `"${random.below(9_999)}":1`),
  piece('__proto__', '"__proto__":{}'),
  piece('an object', '"a":{}'),
  piece('writeKey', '"writeKey":"a"'),
  piece('two kinds of writeKey', '"writeKey":"a","writeKey":"b"'),
  piece('writeKey with an escape', '"writeKe\\u0079":"b"'),
  piece('a key of 16 escapes', `"${'\\n'.repeat(16)}":1`),
  piece('a key of 16 letters in escapes', `"${'\\u0041'.repeat(16)}":1`),
  piece('a key of a lone surrogate', '"\\ud800":1'),
  piece('a key before spaces', `"a":1${' '.repeat(12)}`),
  piece('a key in spaces', `${' '.repeat(4)}"a"${' '.repeat(4)}:${' '.repeat(4)}1`),
  piece('a member of quotation marks', `"a":"${'\\"'.repeat(200)}"`),
]

/** Returns JSON of at most `most` bytes, in which the pieces take turns between `open` and `close`. */
export function filled(
  pieces: readonly Piece[],
  { open, close, most, random }: { open: string; close: string; most: number; random: Random },
): string {
  const texts: string[] = []
  let bytes = Buffer.byteLength(open) + Buffer.byteLength(close)
  for (let index = 0; ; index++) {
    const text = pieces[index % pieces.length]?.make(random) ?? ''
    bytes += Buffer.byteLength(text) + 1
    if (bytes > most) return open + texts.join(',') + close
    texts.push(text)
  }
}
