import { isUtf8 } from 'node:buffer'
import { endOfNumber, invalid, isDigit, minus } from './canonical-number.ts'
import { type Entered, madeMessageId, type Origin } from './entered.ts'
import type { MessageLimits } from './limits.ts'
import { attributesFields, MAX_MESSAGE_ID_CHARACTERS, type MessageKind } from './message-schemas.ts'
import { formatTimestamp, isCanonicalTimestamp, parseTimestamp } from './timestamp.ts'

/**
 * Brings a message into canonical form by its bytes, without parsing it. This is the short way, for messages
 * whose JSON is spelled as JSON.stringify would spell it. Most are, because their producers wrote them so.
 * The message is checked and completed as bytes, at a fraction of the cost of parsing and writing it.
 *
 * Returns `undefined` when the spelling can't be judged for sure: odd spaces, needless escapes, long numbers,
 * keys that repeat or begin with a digit, kinds with rules of their own, and everything that would be
 * refused. Then the long way (`enterParsed`) decides. A result is the same as that of the long way, byte for
 * byte.
 */
export function enterCanonical(
  value: Uint8Array,
  origin: Origin,
  limits: MessageLimits,
): Entered | undefined {
  const bytes = Buffer.isBuffer(value) ? value : Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  if (!isUtf8(bytes) || !scan(bytes, limits)) return undefined
  const kind = kinds.get(textOf(bytes, Field.type) ?? '')
  if (kind === undefined || !isSound(bytes, kind)) return undefined

  const timestamp = timestampOf(bytes, origin)
  const messageId = hasField(Field.messageId) ? textOf(bytes, Field.messageId) : madeMessageId(origin)
  if (!timestamp.ok || !isMessageId(messageId)) return undefined
  const body = write(bytes, kind, timestamp.text, messageId)
  if (body.length > limits.maxBytes) return undefined
  const isIdGiven = hasField(Field.messageId)
  return { type: kind.type, messageId, isIdGiven, integrations: integrationsOf(bytes), body }
}

/** The fields of a message that this module reads: their indexes in `keyStarts`, `starts` and `ends`. */
const Field = {
  type: 0,
  version: 1,
  messageId: 2,
  userId: 3,
  anonymousId: 4,
  timestamp: 5,
  context: 6,
  integrations: 7,
  event: 8,
  groupId: 9,
  properties: 10,
  traits: 11,
} as const
const fields = Object.entries(Field)

/**
 * A kind of message. `empty` is the member for its attributes when there are none, with a comma before it.
 */
type Kind = { readonly type: MessageKind; readonly attributes: number; readonly empty: string }

/** The kinds whose rules need no more than a look at single fields. */
const kinds: ReadonlyMap<string, Kind> = new Map(
  (['identify', 'track', 'page', 'screen', 'group'] as const).map((type) => {
    const name = attributesFields[type]
    return [type, { type, attributes: Field[name], empty: `,"${name}":{}` }]
  }),
)

// One message is scanned at a time, and the results are kept in these variables. An object for each message
// would double the cost.
const absent = -1
const keyStarts = new Int32Array(fields.length)
const starts = new Int32Array(fields.length)
const ends = new Int32Array(fields.length)
/** Hashes of the keys of all objects that are open, the innermost object's last. */
const openKeys = new Int32Array(256)
let openKeyCount = 0
let keyHash = 0
let keysLeft = 0

/** Limit on nesting. Deeper messages take the long way, which doesn't use the engine's stack. */
const mostLevels = 64
/** The most keys that entering may add. */
const mostAddedKeys = 5

const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const openBracket = 0x5b
const backslash = 0x5c
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

/**
 * 1 for each byte that stands for itself in a string. Valid sequences of bytes above ASCII were checked
 * before.
 */
const plain = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x20 && byte !== quote && byte !== backslash ? 1 : 0,
)
/**
 * 1 for each byte that may follow a backslash. `\/` and `\u` are left out, because they have another
 * spelling.
 */
const escapable = Uint8Array.from({ length: 256 }, (_, byte) =>
  '"\\bfnrt'.includes(String.fromCharCode(byte)) ? 1 : 0,
)
const literals = ['true', 'false', 'null'].map((text) => Buffer.from(text))

/**
 * Parameters of FNV-1a with 32 bits. If two keys of an object have the same hash, the message takes the long
 * way.
 */
const hashSeed = 0x811c9dc5 | 0
const hashFactor = 0x01000193

const fieldByHash = new Map(fields.map(([name, field]) => [hashOf(name), { field, name: Buffer.from(name) }]))

/**
 * Returns true if the bytes are an object in canonical spelling, within the limits. Records the places of its
 * fields.
 */
function scan(bytes: Buffer, limits: MessageLimits): boolean {
  if (bytes[0] !== openBrace || bytes[1] === closeBrace) return false
  starts.fill(absent)
  openKeyCount = 0
  keysLeft = limits.maxKeys - mostAddedKeys
  const levels = Math.min(limits.maxDepth, mostLevels) - 1
  for (let at = 1; ;) {
    const valueAt = endOfKey(bytes, at, 0)
    if (valueAt === invalid) return false
    const known = fieldByHash.get(keyHash)
    const end = endOfValue(bytes, valueAt, levels)
    if (end === invalid) return false
    // The name is between the quotes; a colon follows the second.
    if (known !== undefined && isAt(bytes, at + 1, valueAt - 2, known.name)) {
      keyStarts[known.field] = at
      starts[known.field] = valueAt
      ends[known.field] = end
    }
    if (bytes[end] === closeBrace) return end + 1 === bytes.length
    if (bytes[end] !== comma) return false
    at = end + 1
  }
}

function isAt(bytes: Buffer, start: number, end: number, sought: Buffer): boolean {
  if (end - start !== sought.length) return false
  for (let i = 0; i < sought.length; i++) if (bytes[start + i] !== sought[i]) return false
  return true
}

/**
 * Returns the place after the value that begins at `at`, or `invalid`. So do the functions `endOf…` below.
 */
function endOfValue(bytes: Buffer, at: number, levels: number): number {
  const first = bytes[at]
  if (first === quote) return endOfString(bytes, at + 1)
  if (first === openBrace) return levels <= 0 ? invalid : endOfObject(bytes, at + 1, levels - 1)
  if (first === openBracket) return levels <= 0 ? invalid : endOfArray(bytes, at + 1, levels - 1)
  if (first === minus || isDigit(first)) return endOfNumber(bytes, at)
  for (const literal of literals) {
    if (isAt(bytes, at, at + literal.length, literal)) return at + literal.length
  }
  return invalid
}

function endOfObject(bytes: Buffer, start: number, levels: number): number {
  if (bytes[start] === closeBrace) return start + 1
  const firstKey = openKeyCount
  for (let at = start; ;) {
    const valueAt = endOfKey(bytes, at, firstKey)
    if (valueAt === invalid) return invalid
    const end = endOfValue(bytes, valueAt, levels)
    if (end === invalid) return invalid
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
 * Returns the place after the colon of a key. A key that repeats another of its object is invalid: JSON.parse
 * lets the last one count, in the place of the first. A key that begins with a digit is invalid too:
 * JSON.parse puts integer keys first, in numeric order.
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

function hashOf(name: string): number {
  return Buffer.from(name).reduce((hash, byte) => Math.imul(hash ^ byte, hashFactor), hashSeed)
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

function hasField(field: number): boolean {
  return starts[field] !== absent
}

// These functions return the places of a field that is present.
function keyStartOf(field: number): number {
  return keyStarts[field] ?? absent
}

function startOf(field: number): number {
  return starts[field] ?? absent
}

function endOf(field: number): number {
  return ends[field] ?? absent
}

/** Returns the first byte of a field that is present. That byte identifies every kind of value. */
function firstByte(bytes: Buffer, field: number): number | undefined {
  return bytes[startOf(field)]
}

/** Returns a field's string, if it is a string without escapes. */
function textOf(bytes: Buffer, field: number): string | undefined {
  if (!hasField(field) || firstByte(bytes, field) !== quote) return undefined
  const text = bytes.toString('utf8', startOf(field) + 1, endOf(field) - 1)
  return text.includes('\\') ? undefined : text
}

/**
 * Returns true if the message has what the event schema demands of its kind. A few valid messages fail this
 * check too, and take the long way.
 */
function isSound(bytes: Buffer, { type }: Kind): boolean {
  return (
    (isFilled(bytes, Field.userId) || isFilled(bytes, Field.anonymousId)) &&
    isTextOrNull(bytes, Field.userId) &&
    isTextOrNull(bytes, Field.anonymousId) &&
    (type !== 'track' || isFilled(bytes, Field.event)) &&
    (type !== 'group' || isFilled(bytes, Field.groupId)) &&
    isObjectOrNull(bytes, Field.properties) &&
    isObjectOrNull(bytes, Field.traits) &&
    isObjectOrNull(bytes, Field.integrations) &&
    (!hasField(Field.context) || firstByte(bytes, Field.context) === openBrace) &&
    (!hasField(Field.version) || isNumber(firstByte(bytes, Field.version)))
  )
}

function isFilled(bytes: Buffer, field: number): boolean {
  return hasField(field) && firstByte(bytes, field) === quote && bytes[startOf(field) + 1] !== quote
}

const firstOfNull = 0x6e

function isTextOrNull(bytes: Buffer, field: number): boolean {
  const first = firstByte(bytes, field)
  return !hasField(field) || first === quote || first === firstOfNull
}

function isObjectOrNull(bytes: Buffer, field: number): boolean {
  const first = firstByte(bytes, field)
  return !hasField(field) || first === openBrace || first === firstOfNull
}

function isNumber(first: number | undefined): boolean {
  return first === minus || isDigit(first)
}

function isMessageId(text: string | undefined): text is string {
  return text !== undefined && text !== '' && text.length <= MAX_MESSAGE_ID_CHARACTERS
}

/** A checked timestamp. `text` is `undefined` if the timestamp can stay as it is. */
type Timestamp = { ok: true; text: string | undefined } | { ok: false }
const badTimestamp: Timestamp = { ok: false }
const goodTimestamp: Timestamp = { ok: true, text: undefined }

function timestampOf(bytes: Buffer, origin: Origin): Timestamp {
  const sent = textOf(bytes, Field.timestamp)
  if (sent === undefined && hasField(Field.timestamp)) return badTimestamp
  const ms = sent === undefined ? origin.timestampMs : parseTimestamp(sent)
  if (ms === undefined) return badTimestamp
  if (sent !== undefined && isCanonicalTimestamp(sent)) return goodTimestamp
  const text = formatTimestamp(ms)
  return text === undefined ? badTimestamp : { ok: true, text }
}

let lastIntegrations: { text: string; value: Readonly<Record<string, unknown>> } | undefined

/**
 * Returns the message's `integrations`. The last result is reused, because most messages of a source have the
 * same.
 */
function integrationsOf(bytes: Buffer): Readonly<Record<string, unknown>> | undefined {
  if (!hasField(Field.integrations) || firstByte(bytes, Field.integrations) !== openBrace) return undefined
  const text = bytes.toString('utf8', startOf(Field.integrations), endOf(Field.integrations))
  if (lastIntegrations?.text !== text) lastIntegrations = { text, value: JSON.parse(text) }
  return lastIntegrations.value
}

const head = Buffer.from('{"version":')
const defaultVersion = Buffer.from('1')
const typeKey = Buffer.from(',"type":')
const addedVersionBytes = '"version":1,'.length

/** Writes the version and the type first, then the fields in their order, then the missing fields. */
function write(
  bytes: Buffer,
  { attributes, empty }: Kind,
  timestamp: string | undefined,
  messageId: string,
): Buffer {
  const isRewritten = timestamp !== undefined && hasField(Field.timestamp)
  const isNull = hasField(attributes) && firstByte(bytes, attributes) === firstOfNull
  const newTimestamp = timestamp === undefined ? '' : `,"timestamp":"${timestamp}"`
  let missing = isRewritten ? '' : newTimestamp
  if (!hasField(Field.messageId)) missing += `,"messageId":${JSON.stringify(messageId)}`
  if (!hasField(Field.context)) missing += ',"context":{}'
  if (!hasField(attributes)) missing += empty
  let length = bytes.length + Buffer.byteLength(missing)
  if (!hasField(Field.version)) length += addedVersionBytes
  if (isRewritten) length += newTimestamp.length - 1 - (endOf(Field.timestamp) - keyStartOf(Field.timestamp))

  if (isNull) length -= 'null'.length - '{}'.length

  const to = Buffer.allocUnsafe(length)
  let at = head.copy(to)
  at += hasField(Field.version)
    ? bytes.copy(to, at, startOf(Field.version), endOf(Field.version))
    : defaultVersion.copy(to, at)
  at += typeKey.copy(to, at)
  at += bytes.copy(to, at, startOf(Field.type), endOf(Field.type))
  let from = 1
  for (const field of cutsFor(isRewritten, isNull ? attributes : absent)) {
    at = writeRun(bytes, from, keyStartOf(field), to, at)
    if (field === Field.timestamp) at += to.write(newTimestamp, at, 'latin1')
    else if (field === attributes) at += to.write(empty, at, 'latin1')
    from = endOf(field) + 1
  }
  at = writeRun(bytes, from, bytes.length, to, at)
  at += to.write(missing, at)
  to[at] = closeBrace
  return to
}

const cuts: number[] = []

/** Returns the fields that are not copied with their neighbours, in the order of their places. */
function cutsFor(isRewritten: boolean, nullField: number): readonly number[] {
  cuts.length = 0
  cuts.push(Field.type)
  if (hasField(Field.version)) cuts.push(Field.version)
  if (isRewritten) cuts.push(Field.timestamp)
  if (nullField !== absent) cuts.push(nullField)
  return cuts.length === 1 ? cuts : cuts.sort((one, other) => keyStartOf(one) - keyStartOf(other))
}

/**
 * Copies the members from `from` on, up to the one at `until` or to the end of the object. A comma or a brace
 * is before `until`.
 */
function writeRun(bytes: Buffer, from: number, until: number, to: Buffer, at: number): number {
  const end = until - 1
  if (end <= from) return at
  to[at] = comma
  return at + 1 + bytes.copy(to, at + 1, from, end)
}
