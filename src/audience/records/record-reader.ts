import {
  compareVersions,
  type Version,
  versionOf,
  type PropertyState,
  type PropertyStateKey,
} from './version.ts'

// A quick reader for those records of audiences in `memberships` that are spelled exactly as Sluice writes
// them, byte for byte. It takes half of the time that a JSON parser needs. This matters because a restore
// reads millions of records. All other records are read by the JSON parser.

/** The audience or trait to which a record belongs. */
type Named = Pick<PropertyState, 'kind' | 'id' | 'name'>
type SpaceProperty = Pick<PropertyStateKey, 'spaceId' | 'property'>

/**
 * A beginning of values, or an end of keys, that many records have in common. `bytes`: the bytes themselves.
 * `said`: their content, decoded.
 */
type Spelled<T> = { readonly bytes: Buffer; readonly said: T }

/** Returns the beginning of the JSON text of a property's record, up to and including `"value":`. */
export function headOf({ kind, id, name }: Named): string {
  return `{"kind":"${kind}","id":${JSON.stringify(id)},"name":${JSON.stringify(name)},"value":`
}

/** Returns the end of a record's key: the part after the user. */
function tailOf({ spaceId, property }: SpaceProperty): string {
  return `",${JSON.stringify([spaceId, property]).slice(1)}`
}

/** Reads a record that is spelled as Sluice writes it. Returns `undefined` if the record has to be parsed. */
export function readAsWritten(
  key: Buffer,
  value: Buffer,
): { stateKey: PropertyStateKey; state: PropertyState; isSilent: boolean } | undefined {
  const stateKey = readKey(key)
  if (stateKey === undefined) return undefined
  const head = heads.at(value, 0, headEnd)
  if (head === undefined) return undefined
  const bytes = new ByteReader(value, head.bytes.length)
  const isMember = bytes.skip(words.true)
  if (!isMember && !bytes.skip(words.false)) return undefined
  if (!bytes.skip(words.version)) return undefined
  const version = readVersion(bytes)
  if (version === undefined || !bytes.skip(words.since)) return undefined
  const since = readVersion(bytes)
  if (since === undefined || compareVersions(since, version) > 0) return undefined
  const isSilent = bytes.skip(words.quiet)
  if (!bytes.skip(words.end) || bytes.at !== value.length) return undefined
  const { kind, id, name } = head.said
  const state: PropertyState = { kind, id, name, value: isMember ? 'true' : 'false', version, since }
  return { stateKey, state, isSilent }
}

/**
 * Remembers how a parsed record begins and ends, so that records with the same beginning and end don't have
 * to be parsed. Only records of audiences are remembered, because the value of a trait may be any JSON.
 */
export function remember({ spaceId, property }: PropertyStateKey, { kind, id, name }: PropertyState): void {
  if (kind !== 'audience') return
  tails.add(tailOf({ spaceId, property }), { spaceId, property })
  heads.add(headOf({ kind, id, name }), { kind, id, name })
}

class Spellings<T> {
  readonly #known = new Map<string, Spelled<T>>()
  #last: Spelled<T> | undefined

  add(text: string, said: T): void {
    const bytes = Buffer.from(text)
    if (this.#known.size >= mostKnown) this.#known.clear()
    this.#known.set(bytes.toString('latin1'), { bytes, said })
  }

  /**
   * Returns the remembered bytes that a record has from the index `at` on, or `undefined` if these bytes
   * aren't remembered. If the previous record had other bytes, calls `endOf` to find the end of the bytes.
   */
  at(record: Buffer, at: number, endOf: (record: Buffer) => number): Spelled<T> | undefined {
    if (this.#last !== undefined && holds(record, at, this.#last.bytes)) return this.#last
    const found = this.#known.get(record.toString('latin1', at, endOf(record)))
    if (found !== undefined) this.#last = found
    return found
  }
}

/** Limit on the audiences, and on the properties, that are remembered. */
const mostKnown = 256
const heads = new Spellings<Named>()
const tails = new Spellings<SpaceProperty>()

const valueMark = Buffer.from(',"value":')

/**
 * Returns the index after `,"value":`, with which the beginning of a value ends. No JSON string can contain
 * `,"value":`, because its quotation marks would be escaped.
 */
function headEnd(value: Buffer): number {
  return value.indexOf(valueMark) + valueMark.length
}

function tailEnd(key: Buffer): number {
  return key.length
}

function readKey(key: Buffer): PropertyStateKey | undefined {
  if (!holds(key, 0, words.list)) return undefined
  const start = words.list.length
  let end = start
  let isAscii = true
  for (; end < key.length; end++) {
    const byte = key[end] ?? 0
    if (byte === quote) break
    // JSON escapes control characters, and a backslash begins an escape. Such a record has to be parsed.
    if (byte < space || byte === backslash) return undefined
    if (byte >= 0x80) isAscii = false
  }
  const tail = end === start ? undefined : tails.at(key, end, tailEnd)
  if (tail === undefined || end + tail.bytes.length !== key.length) return undefined
  const { spaceId, property } = tail.said
  const userId = key.toString(isAscii ? 'latin1' : 'utf8', start, end)
  return { kind: 'property', userId, spaceId, property }
}

function readVersion(bytes: ByteReader): Version | undefined {
  if (!bytes.skip(words.atMs)) return undefined
  const atMs = bytes.number()
  const isNative = bytes.skip(words.native)
  if (!isNative && !bytes.skip(words.moved)) return undefined
  const partition = bytes.number()
  if (!bytes.skip(words.offset)) return undefined
  const offset = bytes.number()
  return bytes.skip(words.end) ? versionOf(atMs, isNative, partition, offset) : undefined
}

const words = {
  list: Buffer.from('["'),
  true: Buffer.from('true'),
  false: Buffer.from('false'),
  version: Buffer.from(',"version":'),
  since: Buffer.from(',"since":'),
  atMs: Buffer.from('{"atMs":'),
  native: Buffer.from(',"isNative":true,"partition":'),
  moved: Buffer.from(',"isNative":false,"partition":'),
  offset: Buffer.from(',"offset":'),
  quiet: Buffer.from(',"quiet":true'),
  end: Buffer.from('}'),
}

class ByteReader {
  readonly #bytes: Buffer
  /** The index of the next byte to read. */
  at: number

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes
    this.at = at
  }

  /** Moves `at` past a word. If there are other bytes at `at`, returns false and doesn't move `at`. */
  skip(word: Buffer): boolean {
    if (!holds(this.#bytes, this.at, word)) return false
    this.at += word.length
    return true
  }

  /**
   * Reads a whole number in JSON's spelling and moves `at` past the number. If there is no number at `at`, or
   * if the number has more than 16 digits, returns NaN and doesn't move `at`.
   */
  number(): number {
    const bytes = this.#bytes
    const isNegative = bytes[this.at] === minus
    const first = isNegative ? this.at + 1 : this.at
    let at = first
    let value = 0
    for (; at < bytes.length; at++) {
      const digit = (bytes[at] ?? 0) - zero
      if (digit < 0 || digit > 9) break
      value = value * 10 + digit
    }
    const digits = at - first
    const isPadded = bytes[first] === zero && (digits > 1 || isNegative)
    if (digits < 1 || digits > maxDigits || isPadded) return Number.NaN
    this.at = at
    return isNegative ? -value : value
  }
}

function holds(bytes: Buffer, at: number, word: Buffer): boolean {
  if (at + word.length > bytes.length) return false
  for (let index = 0; index < word.length; index++) if (bytes[at + index] !== word[index]) return false
  return true
}

const quote = 0x22
const space = 0x20
const backslash = 0x5c
const minus = 0x2d
const zero = 0x30
/** The number of digits of 2^53. */
const maxDigits = 16
