import { endOfNumber, invalid, isDigit, minus } from './json/canonical-number.ts'
import type { FieldPlaces } from './field-places.ts'
import type { MessageLimits } from './limits.ts'
import {
  quote,
  comma,
  colon,
  openBracket,
  backslash,
  closeBracket,
  openBrace,
  closeBrace,
  plain,
  escapable,
  hashSeed,
  hashFactor,
  isAt,
} from './json/json-bytes.ts'

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
const literals = ['true', 'false', 'null'].map((text) => Buffer.from(text))

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
  const { length } = bytes
  let at = start
  for (;;) {
    while (at < length && plain[bytes[at] ?? 0] === 1) at++
    if (bytes[at] === quote) return at + 1
    if (bytes[at] !== backslash || escapable[bytes[at + 1] ?? 0] !== 1) return invalid
    at += 2
  }
}
