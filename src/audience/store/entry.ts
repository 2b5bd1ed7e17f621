import {
  type DeletionFloor,
  encodeDeletionFloor,
  encodeState,
  encodeSyncFloor,
  type SyncFloor,
} from '../records/state-record.ts'
import { NumberReader } from '../records/number-reader.ts'
import { escapeId, unescapeId } from './store-keys.ts'
import {
  compareVersions,
  formatVersion,
  laterOf,
  type Version,
  type PropertyState,
} from '../records/version.ts'

/**
 * The value of one key of `memberships`, with the offset of the key's record. The offset is -1 until Kafka
 * has acknowledged the record. `gone` is a tombstone for all values that aren't newer than `upToMs`. If
 * `upToMs` is `Infinity`, the time isn't known any more. In that case, the tombstone covers all records with
 * lower offsets.
 */
export type Entry =
  | { readonly kind: 'property'; readonly state: PropertyState; readonly offset: number }
  | { readonly kind: 'gone'; readonly upToMs: number; readonly offset: number }
  | { readonly kind: 'deletion'; readonly state: DeletionFloor; readonly offset: number }
  | { readonly kind: 'sync'; readonly state: SyncFloor; readonly offset: number }

export type PropertyEntry = Extract<Entry, { kind: 'property' }>

/** Compares two entries of one key. Returns a negative number if `a` is older than `b`. */
function compareEntries(a: Entry, b: Entry): number {
  if (a.kind === 'property' && b.kind === 'property') return compareVersions(a.state.version, b.state.version)
  if (a.kind === 'sync' && b.kind === 'sync') return compareVersions(a.state.version, b.state.version)
  if (a.kind === 'deletion' && b.kind === 'deletion') return compareFloors(a.state, b.state)
  if (timeOf(a) === Infinity || timeOf(b) === Infinity) return placeOf(a) - placeOf(b)
  // A tombstone counts as newer than the values that it covers, and as older than all other values.
  return timeOf(a) - timeOf(b) || Number(a.kind === 'gone') - Number(b.kind === 'gone')
}

function compareFloors(a: DeletionFloor, b: DeletionFloor): number {
  return a.requestedAtMs - b.requestedAtMs || a.partition - b.partition || a.offset - b.offset
}

/**
 * Returns the offset of an entry. An entry whose record isn't acknowledged yet counts as the last one,
 * because its record will get the highest offset.
 */
function placeOf({ offset }: Entry): number {
  return offset === -1 ? Number.MAX_SAFE_INTEGER : offset
}

function timeOf(entry: Entry): number {
  switch (entry.kind) {
    case 'property':
    case 'sync':
      return entry.state.version.atMs
    case 'gone':
      return entry.upToMs
    case 'deletion':
      return entry.state.requestedAtMs
  }
}

export type Placing = {
  readonly best: Entry
  /** True if the entry that the unit already held is the best one. */
  readonly isKnown: boolean
  /**
   * True if the last record of the key isn't the record of the best entry, so that compaction would keep the
   * wrong record.
   */
  readonly isOutOfOrder: boolean
  /**
   * The state with the lower version, if receivers may have got its value after they got the best entry's
   * value.
   */
  readonly reportedBetween: PropertyEntry | undefined
}

/**
 * Compares a record of `memberships` with the entry that the unit holds for the same key. The entry with the
 * higher version is the best one.
 */
export function place(incoming: Entry, held: Entry | undefined): Placing {
  if (held === undefined) {
    return { best: incoming, isKnown: false, isOutOfOrder: false, reportedBetween: undefined }
  }
  const order = compareEntries(incoming, held)
  if (order === 0) {
    const best = join(incoming, held)
    return { best, isKnown: best === held, isOutOfOrder: false, reportedBetween: undefined }
  }
  const higher = order > 0 ? incoming : held
  const lower = order > 0 ? held : incoming
  const best = withSinceOf(higher, lower)
  return {
    best,
    isKnown: best === held,
    isOutOfOrder: lower.offset > higher.offset,
    reportedBetween: reportedBetween(higher, lower),
  }
}

/**
 * Returns the entry with the higher version. If both entries have the same value, the result has the later
 * `since` of the two. Another owner may have sent the same value again. In that case, the later `since` says
 * when the value was last sent.
 */
function withSinceOf(higher: Entry, lower: Entry): Entry {
  if (higher.kind !== 'property' || lower.kind !== 'property') return higher
  const { since } = lower.state
  if (compareVersions(since, higher.state.since) <= 0 || !saysSame(higher.state, lower.state)) return higher
  return { ...higher, state: { ...higher.state, since } }
}

function reportedBetween(higher: Entry, lower: Entry): PropertyEntry | undefined {
  if (higher.kind !== 'property' || lower.kind !== 'property') return undefined
  if (compareVersions(higher.state.since, lower.state.version) >= 0) return undefined
  return saysSame(higher.state, lower.state) ? undefined : lower
}

/** Returns true if receivers would get the same value of the same audience or trait from both states. */
export function saysSame(a: PropertyState, b: PropertyState): boolean {
  return a.value === b.value && a.id === b.id && a.kind === b.kind
}

/**
 * Returns true if a value must be sent to receivers again. This is so if receivers may have got another
 * value, with a version up to `upTo`, after this value.
 */
export function isUnreported(entry: Entry | undefined, upTo: Version | undefined): entry is PropertyEntry {
  return upTo !== undefined && entry?.kind === 'property' && compareVersions(entry.state.since, upTo) < 0
}

/** Returns true if a deletion up to `deletedUpToMs`, in epoch milliseconds, covers the entry. */
export function isDead(entry: Entry, deletedUpToMs: number): entry is PropertyEntry {
  return entry.kind === 'property' && entry.state.version.atMs <= deletedUpToMs
}

/**
 * Returns true if a value is newer than the deletion up to `deletedUpToMs`, but was last sent before the
 * deletion. In that case, receivers have deleted the value.
 */
export function isReportedBefore(entry: Entry, deletedUpToMs: number): boolean {
  if (entry.kind !== 'property' || entry.state.since.atMs > deletedUpToMs) return false
  return !isDead(entry, deletedUpToMs)
}

/**
 * Returns the entry with its own version as `since`, so that its value becomes a new message. Write the
 * record of the result with `isEmitting`, so that the message is sent.
 */
export function reportedAnew(entry: PropertyEntry): PropertyEntry {
  return { ...entry, state: { ...entry.state, since: entry.state.version } }
}

/**
 * Joins two entries with the same version. There are two such entries if a record was written again, or if
 * two owners read the same change.
 */
function join(incoming: Entry, held: Entry): Entry {
  const offset = Math.max(incoming.offset, held.offset)
  if (incoming.kind === 'property' && held.kind === 'property') {
    const since = laterOf(incoming.state.since, held.state.since)
    if (offset === held.offset && compareVersions(since, held.state.since) === 0) return held
    return { kind: 'property', state: { ...held.state, since }, offset }
  }
  return offset === held.offset ? held : { ...held, offset }
}

/**
 * Returns the value of the Kafka record for an entry. `isEmitting`: true if receivers get a message when the
 * record of a state is read. If it is false, the value contains `"quiet":true`.
 */
export function recordValueOf(entry: Entry, isEmitting: boolean): Buffer | null {
  switch (entry.kind) {
    case 'property':
      return encodeState(entry.state, !isEmitting)
    case 'gone':
      return null
    case 'deletion':
      return encodeDeletionFloor(entry.state)
    case 'sync':
      return encodeSyncFloor(entry.state)
  }
}

/**
 * Encodes an entry as text for the store. The text is short and quick to read. Returns `undefined` for a
 * tombstone, because tombstones aren't stored.
 */
export function encodeEntry(entry: Entry): string | undefined {
  switch (entry.kind) {
    case 'property': {
      const { kind, id, name, value, version, since } = entry.state
      const isNew = compareVersions(version, since) === 0
      const head = kind === 'audience' ? (value === 'true' ? members : nonMembers) : 't'
      const value_ = kind === 'audience' ? '' : value
      return `${head}${formatVersion(version)};${isNew ? '' : formatVersion(since)};${entry.offset};${idMarkOf(id)}${idMarkOf(name)}${value_}`
    }
    case 'gone':
      return undefined
    case 'deletion': {
      const { requestedAtMs, requestId, partition, offset } = entry.state
      return `d${requestedAtMs};${partition};${offset};${entry.offset};${requestId}`
    }
    case 'sync':
      return `f${formatVersion(entry.state.version)};${entry.offset};${storable(entry.state.syncId)}`
  }
}

const members = 'a1'
const nonMembers = 'a0'

/** Returns true if an encoded property entry says that the user is a member of an audience. */
export function isMemberText(text: string): boolean {
  return text.startsWith(members)
}

/**
 * Returns true if an encoded property entry belongs to an audience. `idMark` is the result of `idMarkOf` for
 * the audience's id.
 */
export function hasIdMark(text: string, idMark: string): boolean {
  const first = text.indexOf(';')
  const second = text.indexOf(';', first + 1)
  const third = text.indexOf(';', second + 1)
  return text.startsWith('a') && text.startsWith(idMark, third + 1)
}

/** Returns an id or a name in the form that it has in an encoded entry. */
export function idMarkOf(id: string): string {
  const text = storable(id)
  return `${text.length}:${text}`
}

/**
 * Returns a text that the store's encoding, UTF-8, doesn't change. UTF-8 can't encode half a surrogate pair,
 * so a text with such a half is escaped. Other texts stay as they are, unless they look like an escaped one.
 */
function storable(text: string): string {
  return text.isWellFormed() && unescapeId(text) === text ? text : escapeId(text)
}

/**
 * Decodes a text that `encodeEntry` wrote. Throws on any other text, because such a text means that the store
 * is broken.
 */
export function decodeEntry(text: string): Entry {
  switch (text[0]) {
    case 'a':
    case 't':
      return decodeProperty(text)
    case 'd': {
      const numbers = new NumberReader(text, 1)
      const requestedAtMs = numbers.next()
      numbers.at++
      const partition = numbers.next()
      numbers.at++
      const offset = numbers.next()
      numbers.at++
      const at = numbers.next()
      const requestId = text.slice(numbers.at + 1)
      return { kind: 'deletion', state: { requestedAtMs, requestId, partition, offset }, offset: at }
    }
    case 'f': {
      const numbers = new NumberReader(text, 1)
      const version = storedVersion(numbers)
      numbers.at++
      const offset = numbers.next()
      return { kind: 'sync', state: { version, syncId: unescapeId(text.slice(numbers.at + 1)) }, offset }
    }
    default:
      throw new Error('the store holds what it was not given')
  }
}

function decodeProperty(text: string): PropertyEntry {
  const isAudience = text.startsWith('a')
  const numbers = new NumberReader(text, isAudience ? members.length : 1)
  const version = storedVersion(numbers)
  numbers.at++
  const since = text.charCodeAt(numbers.at) === semicolon ? version : storedVersion(numbers)
  numbers.at++
  const offset = numbers.next()
  numbers.at++
  const id = lengthened(text, numbers)
  const name = lengthened(text, numbers)
  const value = isAudience ? (text.startsWith(members) ? 'true' : 'false') : text.slice(numbers.at)
  return {
    kind: 'property',
    state: { kind: isAudience ? 'audience' : 'trait', id, name, value, version, since },
    offset,
  }
}

/** Reads what `idMarkOf` wrote: a length, a colon, and then a text of this length. */
function lengthened(text: string, numbers: NumberReader): string {
  const length = numbers.next()
  const start = numbers.at + 1
  numbers.at = start + length
  return unescapeId(text.slice(start, numbers.at))
}

/** Reads a version that `formatVersion` wrote. */
function storedVersion(numbers: NumberReader): Version {
  const atMs = numbers.next()
  const isNative = numbers.skip('.1.')
  if (!isNative) numbers.at += '.0.'.length
  const partition = numbers.next()
  numbers.at++
  return { atMs, isNative, partition, offset: numbers.next() }
}

const semicolon = 0x3b

/** The audience or trait to which a change belongs, and the version of the change. */
type ChangeClaim = Pick<PropertyState, 'kind' | 'id' | 'version'>

/**
 * Compares the version of an encoded entry with the version of a change, like `compareVersions`. Returns
 * `undefined` if the entry isn't of the same audience or trait. For most changes that come too late, this
 * result is enough to drop the change.
 */
export function compareStored(text: string, { kind, id, version }: ChangeClaim): number | undefined {
  const isAudience = kind === 'audience'
  if (!text.startsWith(isAudience ? 'a' : 't')) return undefined
  const numbers = new NumberReader(text, isAudience ? members.length : 1)
  const stored = storedVersion(numbers)
  // Skips `since` and the offset of the record.
  numbers.at = text.indexOf(';', text.indexOf(';', numbers.at + 1) + 1) + 1
  if (!text.startsWith(idMarkOf(id), numbers.at)) return undefined
  return compareVersions(stored, version)
}
