import {
  headerText,
  headerValue,
  type OriginPlace,
  parseOrigin,
  parseWholeNumber,
  type ReceivedHeaders,
  type PropertyHeader,
} from '../message/record-headers.ts'
import { isFilled } from '../message/json/json.ts'

/** The place of a delivery's origin record, which is the record that first contained the message. */
export type Origin = OriginPlace

/**
 * The retry state of a delivery: its attempts and waits so far. Records of the topics `retry.*`, `replays`
 * and `dead-letters` have the retry state in their headers. The value of such a record is the message, which
 * stays unchanged.
 */
export type RetryState = {
  sourceId: string
  destinationId: string
  messageId: string
  /** The message's `type`. */
  kind: string
  /** The rung on which the delivery waits next. */
  nextRung: number
  /**
   * The number of rungs that have passed since the last attempt while the delivery waited for its turn. These
   * rungs don't advance `nextRung`.
   */
  waits?: number
  /** The number of attempts so far. It is 0 for a delivery that has only waited. */
  attempts: number
  /** The append time of the origin record, in epoch milliseconds. */
  firstSeenMs: number
  /**
   * The latest time at which the last attempt may be due, in epoch milliseconds. It is 0 while the delivery's
   * clock isn't running.
   */
  expiresAtMs: number
  /** Hooks that failed and are not tried again. */
  failedHooks: readonly string[]
  /** Hooks to which no request has been sent so far, because every attempt left them out. */
  unsentHooks?: readonly string[]
  /**
   * Hooks that asked for a wait. The value is the time before which the hook isn't tried, in epoch
   * milliseconds.
   */
  notBeforeMs: ReadonlyMap<string, number>
  /**
   * What the hooks of the three lists above were when they were put there: contents by hook id (see
   * `src/delivery/hook-content.ts`). Hooks that were edited since don't count as being in the lists. A hook
   * that isn't in this map counts as not edited. Absent in records of earlier versions.
   */
  hookContents?: ReadonlyMap<string, string> | undefined
  lastOutcome: string
  origin: Origin
  /**
   * The property whose value the delivery carries, if the delivery is an Identify of one property of a user.
   */
  property?: PropertyHeader | undefined
  /**
   * True if the delivery is an uncertain Identify of one property. This means that an attempt timed out, was
   * reset or was answered with a 5xx. So a server may have got the request, and may act on it late. Once this
   * field is true, it stays true.
   */
  isUncertain?: boolean
  /**
   * True if an uncertain delivery has succeeded. The delivery stays on the ladder nevertheless, because a
   * newer value may come meanwhile. If one has come when the delivery falls due, this newer value is sent
   * once more.
   */
  isDelivered?: boolean
  /** The id of the last replay that sent the delivery. It is '' if no replay did. */
  replayJob?: string
  /**
   * The mapping that made the request of the first try, as JSON: retries make the same request by it. '': the
   * message was sent as it is. `undecidedMapping`: it wasn't tried yet. `undefined`: not yet, unless it was
   * tried, and then it was sent as it is.
   */
  mapping?: string | undefined
  /** True if the conditions of its destination weren't asked yet, because the destination had to wait. */
  isUnjudged?: boolean
}

/** The mapping of a delivery is decided by its next try. */
export const undecidedMapping = 'undecided'

/** The record headers that encode a `RetryState`. */
export type RetryHeaders = Record<string, string>

const maxTextBytes = 1024
/** Limit on headers that are whole numbers. */
const maxNumberBytes = 64
/** Limit on the mapping of the first try. The rules of the catalog allow fewer bytes (`mappingLimits`). */
const maxMappingBytes = 5 * 1024
const maxListBytes = 16 * 1024
/**
 * Limit on the header `property`, in bytes. The header has a user, a space and a property. A user id has up
 * to 1,000 characters, and JSON may write each character as six bytes.
 */
const maxPropertyBytes = 14 * 1024
const maxReplayJobBytes = 64
const replayJobId = /^[A-Za-z0-9-]{1,64}$/
/**
 * Limit on the hooks in a header's list. A destination has at most five hooks, but edits of the catalog may
 * replace all of them while a delivery waits. The limit leaves room for 25 sets of five hooks.
 */
const maxListed = 125
/**
 * Limit on the hooks whose contents are written. The hooks of the last attempt come last, and are kept. A
 * hook whose content isn't written counts as not edited.
 */
const maxContents = 10
const maxContentsBytes = 1536
const hookId = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/
const hookContent = /^[A-Za-z0-9_-]{1,32}$/

/**
 * The headers that `encodeRetryState` may write, each with its limit in bytes of UTF-8. The sum of the limits
 * is below the room that a record of a retry topic has for headers.
 */
const headerLimits: readonly (readonly [name: string, maxBytes: number])[] = [
  ['source-id', maxTextBytes],
  ['destination-id', maxTextBytes],
  ['message-id', maxTextBytes],
  ['message-type', maxTextBytes],
  ['rung', maxNumberBytes],
  ['waits', maxNumberBytes],
  ['attempts', maxNumberBytes],
  ['first-seen', maxNumberBytes],
  ['expires-at', maxNumberBytes],
  ['origin', maxTextBytes],
  ['failed-hooks', maxListBytes],
  // This header has at most the five hooks of the first attempt.
  ['unsent-hooks', maxTextBytes],
  ['not-before', maxListBytes],
  ['hook-contents', maxContentsBytes],
  ['last-outcome', maxTextBytes],
  ['property', maxPropertyBytes],
  ['since', maxTextBytes],
  ['uncertain', maxNumberBytes],
  ['delivered', maxNumberBytes],
  ['replay-job', maxReplayJobBytes],
  ['mapping', maxMappingBytes],
  ['unjudged', maxNumberBytes],
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
    // A producer can date its record before 1970, and `decodeRetryState` refuses a negative number.
    'first-seen': String(Math.max(0, state.firstSeenMs)),
    'expires-at': String(state.expiresAtMs),
    origin: `${origin.topic}/${origin.partition}/${origin.offset}`,
  }
  if ((state.waits ?? 0) > 0) headers['waits'] = String(state.waits)
  if (state.failedHooks.length > 0) headers['failed-hooks'] = JSON.stringify(state.failedHooks)
  const { unsentHooks = [] } = state
  if (unsentHooks.length > 0) headers['unsent-hooks'] = JSON.stringify(unsentHooks)
  if (state.notBeforeMs.size > 0) headers['not-before'] = JSON.stringify([...state.notBeforeMs])
  const contents = contentsToWrite(state)
  if (contents.length > 0) headers['hook-contents'] = JSON.stringify(contents)
  if (state.lastOutcome !== '') headers['last-outcome'] = state.lastOutcome.slice(0, maxOutcomeCharacters)
  if (property !== undefined) {
    // JSON keeps every id intact, even an id with half a surrogate pair, which UTF-8 can't express.
    headers['property'] = JSON.stringify([property.userId, property.spaceId, property.property])
    headers['since'] = property.since
  }
  if (state.isUncertain === true) headers['uncertain'] = isTrue
  if (state.isDelivered === true) headers['delivered'] = isTrue
  if (isReplayJob(state.replayJob)) headers['replay-job'] = state.replayJob
  if (state.isUnjudged === true) headers['unjudged'] = isTrue
  const { mapping = '' } = state
  // Without a try, it is undecided anyway.
  if (mapping !== '' && state.attempts > 0) headers['mapping'] = mapping
  return headers
}

const isTrue = '1'

/** Returns the contents of the hooks that the state has in its lists. */
function contentsToWrite(state: RetryState): readonly (readonly [id: string, content: string])[] {
  const { failedHooks, unsentHooks = [], notBeforeMs, hookContents } = state
  if (hookContents === undefined) return []
  if (failedHooks.length + unsentHooks.length + notBeforeMs.size === 0) return []
  const listed = new Set([...failedHooks, ...unsentHooks, ...notBeforeMs.keys()])
  return [...hookContents].filter(([id]) => listed.has(id)).slice(-maxContents)
}

/** Limit on the characters of an outcome. In UTF-8, each character takes at most three bytes. */
const maxOutcomeCharacters = 300

export type Decoded = { ok: true; state: RetryState } | { ok: false; detail: string }

/**
 * Reads the headers that `encodeRetryState` wrote. If another program wrote the headers, or if the headers
 * were damaged, the result lists the faults. This function never throws. A decoded state can always be
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
    hookContents: readContents(headers, faults),
    lastOutcome: headerText(headers, 'last-outcome') ?? '',
    origin: read('origin', parseOrigin, nowhere, "can't be read"),
    property: readProperty(headers, faults),
    isUncertain: readFlag(headers, 'uncertain', faults),
    isDelivered: readFlag(headers, 'delivered', faults),
    replayJob: replayJobOf(headers),
    mapping: headerText(headers, 'mapping'),
    isUnjudged: readFlag(headers, 'unjudged', faults),
  }
  return faults.length === 0 ? { ok: true, state } : refuse(faults)
}

const nowhere: Origin = { topic: '', partition: 0, offset: 0 }

function refuse(faults: readonly string[]): Decoded {
  return { ok: false, detail: `headers: ${faults.join(', ')}` }
}

/**
 * Returns the retry headers for the dead letter of a record whose headers `decodeRetryState` has refused. The
 * result has the known headers, each cut to its limit.
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

/** The size of U+FFFD in UTF-8, in bytes. This character replaces a character that was cut in two. */
const replacementBytes = 3

/**
 * Returns true if a value is longer than the limit. The value is first read as UTF-8. Each of its invalid
 * bytes becomes a character of three bytes, so the value may get longer.
 */
function isLonger(value: Buffer | string | undefined, maxBytes: number): boolean {
  if (value === undefined || value.length * 3 <= maxBytes) return false
  return Buffer.byteLength(value.toString()) > maxBytes
}

/** Reads a header with a JSON list. Returns an empty list if the header is absent. */
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
    // The code below adds the fault. It also adds the fault for JSON that isn't a list of such items.
  }
  faults.push(`${name} can't be read`)
  return []
}

function readContents(headers: ReceivedHeaders, faults: string[]): ReadonlyMap<string, string> | undefined {
  const contents = readList(headers, 'hook-contents', isHookContent, faults)
  return contents.length === 0 ? undefined : new Map(contents)
}

/** Reads the headers `property` and `since`. It is a fault if only one of them is present. */
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
 * header is no valid id, because the id is later sent in the header of an HTTP request.
 */
function replayJobOf(headers: ReceivedHeaders): string {
  const text = headerText(headers, 'replay-job')
  return isReplayJob(text) ? text : ''
}

/**
 * Returns the time at which the message of a record came first, in epoch milliseconds. Call it only for
 * records of topics that only Sluice writes. `timestampMs` is the time of the record, which isn't earlier.
 */
export function firstSeenOf(headers: ReceivedHeaders, timestampMs: number): number {
  const text = headerText(headers, 'first-seen') ?? ''
  return /^\d{1,15}$/.test(text) ? Math.min(Number(text), timestampMs) : timestampMs
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

function isHookContent(value: unknown): value is [string, string] {
  return Array.isArray(value) && value.length === 2 && isHookId(value[0]) && isContent(value[1])
}

function isContent(value: unknown): boolean {
  return typeof value === 'string' && hookContent.test(value)
}

function isTime(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0
}
