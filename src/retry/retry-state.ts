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

/** The place of the record from which a delivery was first made. */
export type Origin = OriginPlace

/**
 * The retry state of a delivery: what it has been through. Records of `retry.*`, `replays` and `dead-letters`
 * have it in their headers. The message itself is the record's value, which stays unchanged.
 */
export type RetryState = {
  sourceId: string
  destinationId: string
  messageId: string
  /** The message's `type`. */
  kind: string
  /** The rung that the delivery takes next. */
  nextRung: number
  /**
   * Number of steps of the ladder for which the delivery has waited since its last try without getting a
   * turn. These steps use up no rung.
   */
  waits?: number
  /** Number of attempts so far; 0 for a delivery that has only waited. */
  attempts: number
  /** The append time of the origin record, in epoch milliseconds. */
  firstSeenMs: number
  /**
   * The latest time at which the last try may be due, in epoch milliseconds; 0 while the delivery's clock
   * isn't running.
   */
  expiresAtMs: number
  /** Hooks that failed for good. They are not tried again. */
  failedHooks: readonly string[]
  /** Hooks that have not got a request so far, because every attempt left them out. */
  unsentHooks?: readonly string[]
  /** Hooks that asked for a wait, with the epoch milliseconds before which they aren't tried. */
  notBeforeMs: ReadonlyMap<string, number>
  lastOutcome: string
  origin: Origin
  /** The property whose value the delivery has, if it is an Identify of one property of a user. */
  property?: PropertyHeader | undefined
  /**
   * True if an Identify of one property is uncertain: a server may have got an attempt of it and may act on
   * it late, because the attempt timed out, was reset or was answered with a 5xx. Once true, it stays true.
   */
  isUncertain?: boolean
  /**
   * True if an uncertain delivery has been delivered. It stays on the ladder only to be judged again, in case
   * there is a newer value by then.
   */
  isDelivered?: boolean
  /** The id of the last replay that sent the delivery; '' if no replay did. */
  replayJob?: string
}

/** The record headers that encode a `RetryState`. */
export type RetryHeaders = Record<string, string>

const maxTextBytes = 1024
const maxListBytes = 16 * 1024
/**
 * Limit on the header `property`: a user, a space and a property. A user id has up to 1,000 characters, each
 * of which JSON may write as six bytes.
 */
const maxPropertyBytes = 14 * 1024
const maxReplayJobBytes = 64
const replayJobId = /^[A-Za-z0-9-]{1,64}$/
/**
 * Limit on the hooks in a list. A destination has at most five hooks. Edits of the catalog may replace them
 * all while a delivery waits, and the limit leaves room for 25 such sets.
 */
const maxListed = 125
const hookId = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/

/**
 * The headers that `encodeRetryState` may write, each with its limit in bytes of UTF-8. Together they stay
 * within the room that retry topics have for headers.
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
  // At most the five hooks of the first attempt are in this header.
  ['unsent-hooks', maxTextBytes],
  ['not-before', maxListBytes],
  ['last-outcome', maxTextBytes],
  ['property', maxPropertyBytes],
  ['since', maxTextBytes],
  ['uncertain', maxTextBytes],
  ['delivered', maxTextBytes],
  ['replay-job', maxReplayJobBytes],
]

export function encodeRetryState(state: RetryState): RetryHeaders {
  const { origin, property } = state
  const headers: RetryHeaders = {
    'source-id': state.sourceId,
    'destination-id': state.destinationId,
    'message-id': state.messageId,
    'message-type': state.kind,
    rung: String(state.nextRung),
    attempts: String(state.attempts),
    // A producer can date its record before 1970. A negative number couldn't be read as a count.
    'first-seen': String(Math.max(0, state.firstSeenMs)),
    'expires-at': String(state.expiresAtMs),
    origin: `${origin.topic}/${origin.partition}/${origin.offset}`,
  }
  if ((state.waits ?? 0) > 0) headers['waits'] = String(state.waits)
  if (state.failedHooks.length > 0) headers['failed-hooks'] = JSON.stringify(state.failedHooks)
  const { unsentHooks = [] } = state
  if (unsentHooks.length > 0) headers['unsent-hooks'] = JSON.stringify(unsentHooks)
  if (state.notBeforeMs.size > 0) headers['not-before'] = JSON.stringify([...state.notBeforeMs])
  if (state.lastOutcome !== '') headers['last-outcome'] = state.lastOutcome.slice(0, maxOutcomeCharacters)
  if (property !== undefined) {
    // JSON keeps every id intact: half a surrogate pair has no UTF-8.
    headers['property'] = JSON.stringify([property.userId, property.spaceId, property.property])
    headers['since'] = property.since
  }
  if (state.isUncertain === true) headers['uncertain'] = isTrue
  if (state.isDelivered === true) headers['delivered'] = isTrue
  if (isReplayJob(state.replayJob)) headers['replay-job'] = state.replayJob
  return headers
}

const isTrue = '1'

/** Limit on the characters of an outcome. In UTF-8 they take at most three times as many bytes. */
const maxOutcomeCharacters = 300

export type Decoded = { ok: true; state: RetryState } | { ok: false; detail: string }

/**
 * Reads the headers that `encodeRetryState` wrote. If something else wrote the headers, or if they were
 * damaged, the result lists the faults. Never throws, whatever the headers are. A decoded state can always be
 * encoded again.
 */
export function decodeRetryState(headers: ReceivedHeaders): Decoded {
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
  const state: RetryState = {
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
  return faults.length === 0 ? { ok: true, state } : refuse(faults)
}

const nowhere: Origin = { topic: '', partition: 0, offset: 0 }

function refuse(faults: readonly string[]): Decoded {
  return { ok: false, detail: `headers: ${faults.join(', ')}` }
}

/**
 * Returns the part of refused headers that a dead letter can keep: the known headers, each cut to its limit.
 */
export function salvageRetryHeaders(headers: ReceivedHeaders): RetryHeaders {
  const kept: RetryHeaders = {}
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

/** Room for U+FFFD, which replaces a character that was cut in two. */
const replacementBytes = 3

/**
 * Returns true if a value is longer than the limit. Its length is that of its text in UTF-8: each byte that
 * isn't valid UTF-8 has become three bytes.
 */
function isLonger(value: Buffer | string | undefined, maxBytes: number): boolean {
  if (value === undefined || value.length * 3 <= maxBytes) return false
  return Buffer.byteLength(value.toString()) > maxBytes
}

/** Reads a JSON list. An absent header is an empty list. */
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
    // The fault is added below, as for JSON that isn't such a list.
  }
  faults.push(`${name} can't be read`)
  return []
}

/** Reads the headers `property` and `since`. Either both or neither must be present. */
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
 * Returns the id of the replay that wrote a record. Returns '' if no replay wrote it. Also returns '' if the
 * header is no valid id, because the id is later sent in a header of a request.
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
