import {
  attributesOf,
  Field,
  isMessageId,
  isSound,
  messagePlaces,
  type PlainKind,
  plainKindOf,
} from './canonical-fields.ts'
import { scanObject } from './canonical-scan.ts'
import { type Entered, madeMessageId, type Origin } from './entered.ts'
import { absent } from './field-places.ts'
import { readIntegrations } from './integrations.ts'
import type { MessageLimits } from './limits.ts'
import { attributesFields } from './message-schemas.ts'
import { areCanonicalSeconds, formatTimestamp, isCanonicalTimestamp, parseTimestamp } from './timestamp.ts'
import { closeBrace, comma, isAt } from './json/json-bytes.ts'

/**
 * Brings a message into canonical form by copying its bytes. This costs a fraction of respelling a message.
 * It is possible only if a message is spelled as JSON.stringify would spell it. Most producers spell messages
 * in this way.
 *
 * If the message has odd spaces, needless escapes, long numbers, or keys that repeat or begin with a digit,
 * returns `undefined`. Also returns `undefined` if the message's kind isn't one of `plainKinds`, or if the
 * message would be refused. `enter` then respells the message. Any other result is byte for byte the same as
 * the result of respelling it. The bytes must be UTF-8.
 */
export function enterCanonical(bytes: Buffer, origin: Origin, limits: MessageLimits): Entered | undefined {
  if (!scan(bytes, limits)) return undefined
  const type = plainKindOf(places)
  if (type === undefined || !isSound(places, type)) return undefined

  const timestamp = timestampOf(bytes, origin)
  const messageId = places.has(Field.messageId) ? places.textOf(Field.messageId) : madeMessageId(origin)
  if (!timestamp.ok || !isMessageId(messageId)) return undefined
  const body = write(bytes, type, timestamp.text, messageId)
  if (body.length > limits.maxBytes) return undefined
  const isIdGiven = places.has(Field.messageId)
  return { type, messageId, isIdGiven, integrations: integrationsOf(bytes), body }
}

/** The places of the fields of the message that is being processed. */
const places = messagePlaces({ nested: false })

/** Limit on the keys that `enterCanonical` adds to a message. */
const mostAddedKeys = 5

/** Returns true if the bytes are one object in canonical spelling, within the limits. */
function scan(bytes: Buffer, { maxDepth, maxKeys }: MessageLimits): boolean {
  places.reset(bytes)
  places.begin()
  return scanObject(bytes, 0, places, { maxDepth, maxKeys: maxKeys - mostAddedKeys }) === bytes.length
}

/** A checked timestamp. `text` is `undefined` if the timestamp can stay as it is. */
type Timestamp = { ok: true; text: string | undefined } | { ok: false }
const badTimestamp: Timestamp = { ok: false }
const goodTimestamp: Timestamp = { ok: true, text: undefined }

function timestampOf(bytes: Buffer, origin: Origin): Timestamp {
  if (isOfLastMinute(bytes)) return goodTimestamp
  const sent = places.textOf(Field.timestamp)
  if (sent === undefined && places.has(Field.timestamp)) return badTimestamp
  const ms = sent === undefined ? origin.timestampMs : parseTimestamp(sent)
  if (ms === undefined) return badTimestamp
  if (sent !== undefined && isCanonicalTimestamp(sent)) {
    lastMinute = Buffer.from(`"${sent.slice(0, 'YYYY-MM-DDTHH:mm:'.length)}`)
    return goodTimestamp
  }
  const text = formatTimestamp(ms)
  return text === undefined ? badTimestamp : { ok: true, text }
}

/** The beginning of the last canonical timestamp, up to its seconds. */
let lastMinute: Buffer | undefined

/**
 * Returns true if the message has a canonical timestamp in the same minute as a message before, as most
 * messages have. Only its seconds have to be checked then.
 */
function isOfLastMinute(bytes: Buffer): boolean {
  if (lastMinute === undefined || !places.has(Field.timestamp)) return false
  const start = places.startOf(Field.timestamp)
  const secondsAt = start + lastMinute.length
  return (
    isAt(bytes, start, secondsAt, lastMinute) &&
    areCanonicalSeconds(bytes, secondsAt, places.endOf(Field.timestamp) - 1)
  )
}

let lastIntegrations: { bytes: Buffer; value: Readonly<Record<string, unknown>> } | undefined

/**
 * Returns the message's `integrations`. If their bytes are the same as in the last call, returns the last
 * result again, which saves time because most messages of a source have the same `integrations`.
 */
function integrationsOf(bytes: Buffer): Readonly<Record<string, unknown>> | undefined {
  if (!places.isObject(Field.integrations)) return undefined
  if (lastIntegrations !== undefined && places.isSpelled(Field.integrations, lastIntegrations.bytes))
    return lastIntegrations.value
  const text = bytes.toString('utf8', places.startOf(Field.integrations), places.endOf(Field.integrations))
  lastIntegrations = { bytes: Buffer.from(text), value: readIntegrations(text) }
  return lastIntegrations.value
}

const head = Buffer.from('{"version":')
const typeKey = Buffer.from(',"type":')
const addedVersionBytes = '"version":1,'.length

/** The beginning of a message that is sent without a version, by its kind. */
const versionedHeads: Readonly<Record<PlainKind, Buffer>> = {
  identify: versionedHead('identify'),
  track: versionedHead('track'),
  page: versionedHead('page'),
  screen: versionedHead('screen'),
  group: versionedHead('group'),
}

function versionedHead(kind: PlainKind): Buffer {
  return Buffer.from(`{"version":1,"type":"${kind}"`)
}

/**
 * The member that is added to a message without attributes, by the kind of the message. It begins with a
 * comma.
 */
const emptyAttributes: Readonly<Record<PlainKind, string>> = {
  identify: emptyMember(attributesFields.identify),
  track: emptyMember(attributesFields.track),
  page: emptyMember(attributesFields.page),
  screen: emptyMember(attributesFields.screen),
  group: emptyMember(attributesFields.group),
}

function emptyMember(name: string): string {
  return `,"${name}":{}`
}

/** Writes the version and the type first, then the other fields in their order, then the missing fields. */
function write(bytes: Buffer, kind: PlainKind, timestamp: string | undefined, messageId: string): Buffer {
  const attributes = attributesOf[kind]
  const empty = emptyAttributes[kind]
  const isRewritten = timestamp !== undefined && places.has(Field.timestamp)
  const isNull = places.isNull(attributes)
  const newTimestamp = timestamp === undefined ? '' : `,"timestamp":"${timestamp}"`
  let missing = isRewritten ? '' : newTimestamp
  if (!places.has(Field.messageId)) missing += `,"messageId":${JSON.stringify(messageId)}`
  if (!places.has(Field.context)) missing += ',"context":{}'
  if (!places.has(attributes)) missing += empty
  let length = bytes.length + (missing === '' ? 0 : Buffer.byteLength(missing))
  if (!places.has(Field.version)) length += addedVersionBytes
  if (isRewritten) {
    const sentBytes = places.endOf(Field.timestamp) - places.keyStartOf(Field.timestamp)
    length += newTimestamp.length - 1 - sentBytes
  }
  if (isNull) length -= 'null'.length - '{}'.length

  const to = Buffer.allocUnsafe(length)
  let at = writeHead(bytes, kind, to)
  let from = 1
  for (const field of cutsFor(isRewritten, isNull ? attributes : absent)) {
    at = writeRun(bytes, from, places.keyStartOf(field), to, at)
    if (field === Field.timestamp) at += to.write(newTimestamp, at, 'latin1')
    else if (field === attributes) at += to.write(empty, at, 'latin1')
    from = places.endOf(field) + 1
  }
  at = writeRun(bytes, from, bytes.length, to, at)
  if (missing !== '') at += to.write(missing, at)
  to[at] = closeBrace
  return to
}

/** Writes the version and the type. Returns the place after them. */
function writeHead(bytes: Buffer, kind: PlainKind, to: Buffer): number {
  if (!places.has(Field.version)) return versionedHeads[kind].copy(to)
  let at = head.copy(to)
  at += bytes.copy(to, at, places.startOf(Field.version), places.endOf(Field.version))
  at += typeKey.copy(to, at)
  return at + bytes.copy(to, at, places.startOf(Field.type), places.endOf(Field.type))
}

const onlyType = [Field.type]
const cuts: number[] = []

/** Returns the fields that aren't copied as they are, in the order of their places. */
function cutsFor(isRewritten: boolean, nullField: number): readonly number[] {
  if (!isRewritten && nullField === absent && !places.has(Field.version)) return onlyType
  cuts.length = 0
  cuts.push(Field.type)
  if (places.has(Field.version)) cuts.push(Field.version)
  if (isRewritten) cuts.push(Field.timestamp)
  if (nullField !== absent) cuts.push(nullField)
  return cuts.sort((one, other) => places.keyStartOf(one) - places.keyStartOf(other))
}

/**
 * Writes a comma and the members from `from` on. `until` is the place of the next member, or the end of the
 * object. The byte before `until` is a comma or a brace, so it isn't copied.
 */
function writeRun(bytes: Buffer, from: number, until: number, to: Buffer, at: number): number {
  const end = until - 1
  if (end <= from) return at
  to[at] = comma
  return at + 1 + bytes.copy(to, at + 1, from, end)
}
