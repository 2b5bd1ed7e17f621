import { endOfNumber, invalid, isDigit, minus } from './canonical-number.ts'
import type { FieldPlaces } from './field-places.ts'
import type { MessageLimits } from './limits.ts'

// A scan over JSON bytes that finds out whether JSON.stringify would write the same bytes.

export const quote = 0x22
export const comma = 0x2c
export const colon = 0x3a
export const openBracket = 0x5b
export const backslash = 0x5c
export const closeBracket = 0x5d
export const openBrace = 0x7b
export const closeBrace = 0x7d

// These variables keep the state of the scan, because only one object is scanned at a time. A new state
// object for each scan would double the cost.
/** Hashes of the keys of all open objects. The keys of the innermost object come last. */
const openKeys = new Int32Array(256)
let openKeyCount = 0
let keyHash = 0
let keysLeft = 0

/**
 * Limit on nesting, which is necessary because this scan is recursive. Deeper messages are parsed
 * (`enterParsed`).
 */
const mostLevels = 64

/**
 * Table of bytes. It has a 1 for each byte that stands for itself in a JSON string. All bytes above ASCII
 * count too, because the caller has checked that they form valid UTF-8.
 */
export const plain = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x20 && byte !== quote && byte !== backslash ? 1 : 0,
)
/**
 * Table of bytes. It has a 1 for each byte that may follow a backslash. The escapes `\/` and `\u` are left
 * out, because JSON.stringify spells such characters differently.
 */
export const escapable = Uint8Array.from({ length: 256 }, (_, byte) =>
  '"\\bfnrt'.includes(String.fromCharCode(byte)) ? 1 : 0,
)
const literals = ['true', 'false', 'null'].map((text) => Buffer.from(text))

/**
 * Parameters of the hash function FNV-1a with 32 bits. If two keys of an object have the same hash, the
 * object doesn't count as canonical.
 */
export const hashSeed = 0x811c9dc5 | 0
export const hashFactor = 0x01000193

/** Returns the hash that the scan uses for a key. */
export function hashOf(name: string): number {
  return Buffer.from(name).reduce((hash, byte) => Math.imul(hash ^ byte, hashFactor), hashSeed)
}

/**
 * Scans the object that begins at `start`, stores the places of its fields, and returns the place after the
 * object. If the object is empty or over the limits, or if it isn't certain that its spelling is canonical,
 * returns `invalid`. The bytes must be UTF-8. The object itself counts as the first level of nesting.
 */
export function scanObject(
  bytes: Buffer,
  start: number,
  places: FieldPlaces,
  { maxDepth, maxKeys }: Pick<MessageLimits, 'maxDepth' | 'maxKeys'>,
): number {
  if (bytes[start] !== openBrace || bytes[start + 1] === closeBrace) return invalid
  openKeyCount = 0
  keysLeft = maxKeys
  const levels = Math.min(maxDepth, mostLevels) - 1
  for (let at = start + 1; ;) {
    const valueAt = endOfKey(bytes, at, 0)
    if (valueAt === invalid) return invalid
    // The name is between the quotation marks. After the second quotation mark comes a colon.
    const field = places.fieldOf(keyHash, at + 1, valueAt - 2)
    const isNested = places.isNested(field)
    if (isNested) places.beginMembers(field)
    const end = isNested ? endOfNested(bytes, valueAt, levels, places) : endOfValue(bytes, valueAt, levels)
    if (end === invalid) return invalid
    if (isNested) places.endMembers(field)
    places.note(field, at, valueAt, end)
    if (bytes[end] === closeBrace) {
      places.keys = maxKeys - keysLeft
      return end + 1
    }
    if (bytes[end] !== comma) return invalid
    at = end + 1
  }
}

export function isAt(bytes: Buffer, start: number, end: number, sought: Buffer): boolean {
  if (end - start !== sought.length) return false
  for (let i = 0; i < sought.length; i++) if (bytes[start + i] !== sought[i]) return false
  return true
}

/** `Buffer.copy` is used only to copy at least this number of bytes. Fewer are copied faster one by one. */
const leastCopied = 40

export function copyBytes(from: Buffer, start: number, end: number, to: Buffer, toStart: number): void {
  if (end - start >= leastCopied) from.copy(to, toStart, start, end)
  else for (let at = start, next = toStart; at < end; at++) to[next++] = from[at] ?? 0
}

/**
 * Returns the place after the value that begins at `at`. If it isn't certain that the value's spelling is
 * canonical, returns `invalid`. The functions `endOf…` below do the same for parts of a value.
 */
function endOfValue(bytes: Buffer, at: number, levels: number): number {
  const first = bytes[at]
  if (first === quote) return endOfString(bytes, at + 1)
  if (first === openBrace) return levels <= 0 ? invalid : endOfObject(bytes, at + 1, levels - 1, undefined)
  if (first === openBracket) return levels <= 0 ? invalid : endOfArray(bytes, at + 1, levels - 1)
  if (first === minus || isDigit(first)) return endOfNumber(bytes, at)
  for (const literal of literals) {
    if (isAt(bytes, at, at + literal.length, literal)) return at + literal.length
  }
  return invalid
}

/** Scans a value. If the value is an object, stores the places of its members. */
function endOfNested(bytes: Buffer, at: number, levels: number, places: FieldPlaces): number {
  if (bytes[at] !== openBrace) return endOfValue(bytes, at, levels)
  return levels <= 0 ? invalid : endOfObject(bytes, at + 1, levels - 1, places)
}

/**
 * Scans an object whose first key begins at `start`. If `noting` is given, stores the places of the object's
 * members in it.
 */
function endOfObject(bytes: Buffer, start: number, levels: number, noting: FieldPlaces | undefined): number {
  if (bytes[start] === closeBrace) return start + 1
  const firstKey = openKeyCount
  for (let at = start; ;) {
    const valueAt = endOfKey(bytes, at, firstKey)
    if (valueAt === invalid) return invalid
    const hash = keyHash
    const end = endOfValue(bytes, valueAt, levels)
    if (end === invalid) return invalid
    noting?.noteMember(hash, at, end)
    if (bytes[end] === closeBrace) {
      openKeyCount = firstKey
      return end + 1
    }
    if (bytes[end] !== comma) return invalid
    at = end + 1
  }
}

function endOfArray(bytes: Buffer, start: number, levels: number): number {
  if (bytes[start] === closeBracket) return start + 1
  for (let at = start; ;) {
    const end = endOfValue(bytes, at, levels)
    if (end === invalid) return invalid
    if (bytes[end] === closeBracket) return end + 1
    if (bytes[end] !== comma) return invalid
    at = end + 1
  }
}

/**
 * Returns the place after the colon of a key. A key that repeats an earlier key of its object is invalid,
 * because JSON.parse keeps only the last value, at the place of the first value. A key that begins with a
 * digit is invalid too, because JSON.parse puts integer keys first, in numeric order.
 */
function endOfKey(bytes: Buffer, start: number, firstKey: number): number {
  if (bytes[start] !== quote || isDigit(bytes[start + 1]) || keysLeft <= 0) return invalid
  keysLeft--
  let at = start + 1
  let hash = hashSeed
  for (let byte = bytes[at] ?? quote; plain[byte] === 1; byte = bytes[at] ?? quote) {
    hash = Math.imul(hash ^ byte, hashFactor)
    at++
  }
  if (bytes[at] !== quote || bytes[at + 1] !== colon || openKeyCount === openKeys.length) return invalid
  for (let key = firstKey; key < openKeyCount; key++) if (openKeys[key] === hash) return invalid
  openKeys[openKeyCount++] = hash
  keyHash = hash
  return at + 2
}

function endOfString(bytes: Buffer, start: number): number {
  let at = start
  for (;;) {
    while (at < bytes.length && plain[bytes[at] ?? 0] === 1) at++
    if (bytes[at] === quote) return at + 1
    if (bytes[at] !== backslash || escapable[bytes[at + 1] ?? 0] !== 1) return invalid
    at += 2
  }
}
