import { isFilled } from '../message/json-values.ts'
import type { PropertyHeader } from '../message/property-header.ts'
import {
  headerText,
  headerValue,
  type OriginPlace,
  parseOrigin,
  parseWholeNumber,
  type ReceivedHeaders,
} from '../message/record-headers.ts'

/**
 * What a delivery carries from topic to topic while it waits: the headers of records in `retry.*` and
 * `dead-letters`. The message itself is the record's value and isn't touched.
 */

/** The record that a delivery began with. */
export type Origin = OriginPlace

export type Carried = {
  sourceId: string
  destinationId: string
  messageId: string
  /** The message's `type`. */
  kind: string
  /** The rung that the delivery takes next. */
  nextRung: number
  /**
   * Steps of the ladder that it has waited since its last try without having had its turn: they use up no
   * rung.
   */
  waits?: number
  /** Requests rounds made so far; a record that only waited has none. */
  attempts: number
  /** When the origin record was appended, in epoch milliseconds. */
  firstSeenMs: number
  /** When the last try may be due; 0 until the first attempt. */
  expiresAtMs: number
  /** Hooks that failed for good: they are not tried again. */
  failedHooks: readonly string[]
  /** Hooks that were left out of each attempt so far: none of them got a request. */
  unsentHooks?: readonly string[]
  /** Hooks that asked for a wait, with the epoch milliseconds before which they aren't tried. */
  notBeforeMs: ReadonlyMap<string, number>
  lastOutcome: string
  origin: Origin
  /** Of an Identify that tells one property of a user: which it is. */
  property?: PropertyHeader | undefined
  /**
   * Of such an Identify: a server may have got an attempt of it and act on it late, since that timed out, was
   * reset or answered 5xx. Once true it stays so.
   */
  isUncertain?: boolean
  /**
   * Of one that is uncertain: it was delivered all the same, and is looked at again only to see whether a
   * newer value holds.
   */
  isDelivered?: boolean
  /** The id of the replay that it came by last; '' is none. */
  replayJob?: string
}

export type CarriedHeaders = Record<string, string>

const maxTextBytes = 1024
const maxListBytes = 16 * 1024
/** A user, a space and a property: ids of 1,000 characters, each of which JSON may write as six bytes. */
const maxPropertyBytes = 14 * 1024
const maxReplayJobBytes = 64
const replayJobId = /^[A-Za-z0-9-]{1,64}$/
/**
 * A destination has five hooks; edits may bring others before each of its 25 tries. Ids are the catalog's.
 */
const maxListed = 125
const hookId = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/

/**
 * All that `encodeCarried` may write, with the bytes of UTF-8 that each may have: together they stay within
 * the room that retry topics have for headers.
 */
const headerLimits: readonly (readonly [name: string, maxBytes: number])[] = [
  ['source-id', maxTextBytes],
  ['destination-id', maxTextBytes],
  ['message-id', maxTextBytes],
  ['message-type', maxTextBytes],
  ['rung', maxTextBytes],
  ['waits', maxTextBytes],
  ['attempts', maxTextBytes],
  ['first-seen', maxTextBytes],
  ['expires-at', maxTextBytes],
  ['origin', maxTextBytes],
  ['failed-hooks', maxListBytes],
  // At most the five hooks of the first attempt.
  ['unsent-hooks', maxTextBytes],
  ['not-before', maxListBytes],
  ['last-outcome', maxTextBytes],
  ['property', maxPropertyBytes],
  ['since', maxTextBytes],
  ['uncertain', maxTextBytes],
  ['delivered', maxTextBytes],
  ['replay-job', maxReplayJobBytes],
]

export function encodeCarried(carried: Carried): CarriedHeaders {
  const { origin, property } = carried
  const headers: CarriedHeaders = {
    'source-id': carried.sourceId,
    'destination-id': carried.destinationId,
    'message-id': carried.messageId,
    'message-type': carried.kind,
    rung: String(carried.nextRung),
    attempts: String(carried.attempts),
    // A record whose producer named a time before 1970: it can't be read as a count.
    'first-seen': String(Math.max(0, carried.firstSeenMs)),
    'expires-at': String(carried.expiresAtMs),
    origin: `${origin.topic}/${origin.partition}/${origin.offset}`,
  }
  if ((carried.waits ?? 0) > 0) headers['waits'] = String(carried.waits)
  if (carried.failedHooks.length > 0) headers['failed-hooks'] = JSON.stringify(carried.failedHooks)
  const { unsentHooks = [] } = carried
  if (unsentHooks.length > 0) headers['unsent-hooks'] = JSON.stringify(unsentHooks)
  if (carried.notBeforeMs.size > 0) headers['not-before'] = JSON.stringify([...carried.notBeforeMs])
  if (carried.lastOutcome !== '') headers['last-outcome'] = carried.lastOutcome.slice(0, maxOutcomeCharacters)
  if (property !== undefined) {
    // JSON, so that whatever is in an id comes through: half a surrogate pair has no UTF-8.
    headers['property'] = JSON.stringify([property.userId, property.spaceId, property.property])
    headers['since'] = property.since
  }
  if (carried.isUncertain === true) headers['uncertain'] = isTrue
  if (carried.isDelivered === true) headers['delivered'] = isTrue
  if (isReplayJob(carried.replayJob)) headers['replay-job'] = carried.replayJob
  return headers
}

const isTrue = '1'

/** In bytes at most three times as long. */
const maxOutcomeCharacters = 300

export type Decoded = { ok: true; carried: Carried } | { ok: false; detail: string }

/**
 * Reads what `encodeCarried` wrote. A record that somebody else put on a retry topic, or that was damaged, is
 * told by its faults. Whatever the headers are, it does not throw, and what it gives can be encoded again.
 */
export function decodeCarried(headers: ReceivedHeaders): Decoded {
  const faults: string[] = []
  for (const [name, maxBytes] of headerLimits) {
    if (isLonger(headerValue(headers, name), maxBytes))
      faults.push(`${name} is longer than ${maxBytes} bytes`)
  }
  if (faults.length > 0) return refuse(faults)
  const read = <T>(name: string, parse: (text: string) => T | undefined, otherwise: T, fault: string): T => {
    const text = headerText(headers, name)
    const value = text === undefined ? undefined : parse(text)
    if (value === undefined) faults.push(text === undefined ? `${name} is missing` : `${name} ${fault}`)
    return value ?? otherwise
  }
  const text = (name: string): string => read(name, (given) => given, '', '')
  const count = (name: string): number => read(name, parseWholeNumber, 0, 'is not a whole number')
  const carried: Carried = {
    sourceId: text('source-id'),
    destinationId: text('destination-id'),
    messageId: text('message-id'),
    kind: text('message-type'),
    nextRung: count('rung'),
    waits: headerText(headers, 'waits') === undefined ? 0 : count('waits'),
    attempts: count('attempts'),
    firstSeenMs: count('first-seen'),
    expiresAtMs: count('expires-at'),
    failedHooks: readList(headers, 'failed-hooks', isHookId, faults),
    unsentHooks: readList(headers, 'unsent-hooks', isHookId, faults),
    notBeforeMs: new Map(readList(headers, 'not-before', isHookTime, faults)),
    lastOutcome: headerText(headers, 'last-outcome') ?? '',
    origin: read('origin', parseOrigin, nowhere, "can't be read"),
    property: readProperty(headers, faults),
    isUncertain: readFlag(headers, 'uncertain', faults),
    isDelivered: readFlag(headers, 'delivered', faults),
    replayJob: replayJobOf(headers),
  }
  return faults.length === 0 ? { ok: true, carried } : refuse(faults)
}

const nowhere: Origin = { topic: '', partition: 0, offset: 0 }

function refuse(faults: readonly string[]): Decoded {
  return { ok: false, detail: `headers: ${faults.join(', ')}` }
}

/**
 * Of headers that `decodeCarried` refuses, what can be kept in a dead letter: those that it knows, each cut
 * to the length that it may have.
 */
export function salvageCarried(headers: ReceivedHeaders): CarriedHeaders {
  const kept: CarriedHeaders = {}
  for (const [name, maxBytes] of headerLimits) {
    const text = headerText(headers, name)
    if (text !== undefined) kept[name] = cut(text, maxBytes)
  }
  return kept
}

function cut(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text)
  return bytes.length <= maxBytes ? text : bytes.subarray(0, maxBytes - replacementBytes).toString()
}

/** A character that was cut in two is read as U+FFFD. */
const replacementBytes = 3

/** In UTF-8 once it is text: each byte that is none becomes three. */
function isLonger(value: Buffer | string | undefined, maxBytes: number): boolean {
  if (value === undefined || value.length * 3 <= maxBytes) return false
  return Buffer.byteLength(value.toString()) > maxBytes
}

/** A JSON list; absent is empty. */
function readList<T>(
  headers: ReceivedHeaders,
  name: string,
  isItem: (value: unknown) => value is T,
  faults: string[],
): readonly T[] {
  const text = headerText(headers, name)
  if (text === undefined) return []
  try {
    const value: unknown = JSON.parse(text)
    if (Array.isArray(value) && value.length <= maxListed && value.every(isItem)) return value
  } catch {
    // Told below, like a value of a wrong shape.
  }
  faults.push(`${name} can't be read`)
  return []
}

/** The headers `property` and `since`: both, or none. */
function readProperty(headers: ReceivedHeaders, faults: string[]): PropertyHeader | undefined {
  const text = headerText(headers, 'property')
  const since = headerText(headers, 'since')
  if (text === undefined && since === undefined) return undefined
  const names = text === undefined ? undefined : parseNames(text)
  if (text === undefined) faults.push('property is missing')
  else if (names === undefined) faults.push("property can't be read")
  if (since === undefined) faults.push('since is missing')
  else if (since === '') faults.push('since is empty')
  if (names === undefined || since === undefined) return undefined
  const [userId, spaceId, property] = names
  return { userId, spaceId, property, since }
}

function parseNames(text: string): readonly [userId: string, spaceId: string, property: string] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    if (!Array.isArray(value) || value.length !== 3) return undefined
    const [userId, spaceId, property]: unknown[] = value
    return isFilled(userId) && isFilled(spaceId) && isFilled(property)
      ? [userId, spaceId, property]
      : undefined
  } catch {
    return undefined
  }
}

function readFlag(headers: ReceivedHeaders, name: string, faults: string[]): boolean {
  const text = headerText(headers, name)
  if (text !== undefined && text !== isTrue) faults.push(`${name} is not ${isTrue}`)
  return text === isTrue
}

/**
 * The replay that a record came by; '' where it came by none, or what it says is no id: it ends in a header
 * of a request.
 */
export function replayJobOf(headers: ReceivedHeaders): string {
  const text = headerText(headers, 'replay-job')
  return isReplayJob(text) ? text : ''
}

function isReplayJob(text: string | undefined): text is string {
  return text !== undefined && replayJobId.test(text)
}

function isHookId(value: unknown): value is string {
  return typeof value === 'string' && hookId.test(value)
}

function isHookTime(value: unknown): value is [string, number] {
  return Array.isArray(value) && value.length === 2 && isHookId(value[0]) && isTime(value[1])
}

function isTime(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0
}
