import type { DeletionStateKey, StateKey, SyncStateKey } from '../records/state-record.ts'
import type { PropertyState, PropertyStateKey } from '../records/version.ts'

// Keys of a unit's store. Ids are escaped in keys for three reasons. First, keys need a separator that no
// escaped id contains. Second, the order of the keys' bytes (UTF-8, as in LevelDB) must be the order in which
// JavaScript compares ids (UTF-16), because a sync goes through keys and ids side by side. Third, an id with
// half a surrogate pair, which UTF-8 can't encode, must not be changed.

/** The separator between ids. No escaped id contains this character. */
export const parted = '\u007f'
/** The first escape prefix: `low` + `a` encodes `parted`, and `low` + `b` encodes `low` itself. */
const low = '\u0080'
/** The second escape prefix: this prefix and four hex digits encode a UTF-16 code unit from U+D7FF on. */
const high = '\ud7ff'
const lowest = 0xd7ff
/** A text that is higher than all escaped ids. */
const last = `${high}~`

const escapedAll = /[\u007f\u0080\ud7ff-\uffff]/g

export function escapeId(id: string): string {
  for (let at = 0; at < id.length; at++) {
    if (isEscaped(id.charCodeAt(at))) return id.replaceAll(escapedAll, escapeUnit)
  }
  return id
}

function isEscaped(unit: number): boolean {
  return unit >= 0x7f && (unit <= 0x80 || unit >= lowest)
}

/**
 * Encodes one UTF-16 code unit. The codes have the same order as the code units, and no code is a prefix of
 * another code.
 */
function escapeUnit(unit: string): string {
  if (unit === parted) return `${low}a`
  if (unit === low) return `${low}b`
  return high + (unit.charCodeAt(0) - lowest).toString(16).padStart(4, '0')
}

export function unescapeId(text: string): string {
  return text.includes(low) || text.includes(high) ? text.replaceAll(codes, unescapeCode) : text
}

const codes = /\u0080[ab]|\ud7ff[0-9a-f]{4}/g

function unescapeCode(code: string): string {
  if (code.startsWith(low)) return code.endsWith('a') ? parted : low
  return String.fromCharCode(Number.parseInt(code.slice(1), 16) + lowest)
}

export const metaKey = 'm'

/**
 * Returns the prefix that all states of a space have in their keys. These keys are sorted by property, and
 * then by user.
 */
export function statesPrefix(spaceId: string): string {
  return `s${escapeId(spaceId)}${parted}`
}

/**
 * Returns the prefix that all states of a property have in their keys. In a key, the escaped user comes after
 * this prefix.
 */
export function propertyPrefix(spaceId: string, property: string): string {
  if (lastProperty.spaceId !== spaceId || lastProperty.property !== property) {
    const prefix = `${statesPrefix(spaceId)}${escapeId(property)}${parted}`
    lastProperty = { spaceId, property, prefix }
  }
  return lastProperty.prefix
}

/** The prefix that was made last. It is kept because consecutive calls mostly have the same property. */
let lastProperty = { spaceId: '', property: '', prefix: `s${parted}${parted}` }

/**
 * Returns the prefix that all deletion floors of a source have in their keys. In a key, the escaped user
 * comes after this prefix.
 */
export function deletionPrefix(sourceId: string): string {
  return `d${escapeId(sourceId)}${parted}`
}

/**
 * Returns the key under which the store keeps a state. `stateKey`: the key of the state's record in
 * `memberships`.
 */
export function storeKeyOf(stateKey: StateKey): string {
  switch (stateKey.kind) {
    case 'property':
      return propertyPrefix(stateKey.spaceId, stateKey.property) + escapeId(stateKey.userId)
    case 'deletion':
      return deletionPrefix(stateKey.sourceId) + escapeId(stateKey.userId)
    case 'sync':
      return `f${escapeId(stateKey.spaceId)}${parted}${escapeId(stateKey.audienceId)}`
  }
}

/** Returns the key of the deletion floor that covers a property. */
export function deletionKeyOf({ userId, spaceId }: Pick<PropertyStateKey, 'userId' | 'spaceId'>): string {
  return deletionPrefix(spaceId) + escapeId(userId)
}

/** Returns the record key from which `storeKeyOf` made a key, or `undefined` for another key of the store. */
export function stateKeyOf(key: string): StateKey | undefined {
  const parts = key.slice(1).split(parted).map(unescapeId)
  const [first = '', second = '', third = ''] = parts
  switch (key[0]) {
    case 's':
      return { kind: 'property', spaceId: first, property: second, userId: third } satisfies PropertyStateKey
    case 'd':
      return { kind: 'deletion', sourceId: first, userId: second } satisfies DeletionStateKey
    case 'f':
      return { kind: 'sync', spaceId: first, audienceId: second } satisfies SyncStateKey
    default:
      return undefined
  }
}

/** Returns the prefix of the keys under which the store lists the properties of a space. */
export function knownPropertiesPrefix(spaceId: string): string {
  return `p${escapeId(spaceId)}${parted}`
}

/** Returns the prefix of the keys under which the store lists the audiences and traits of a property. */
export function knownPropertyPrefix(spaceId: string, property: string): string {
  return `${knownPropertiesPrefix(spaceId)}${escapeId(property)}${parted}`
}

/**
 * Returns the key of the entry which says that an audience or trait has written a property. An audience and a
 * trait may have the same id, so the key of a trait ends with a mark.
 */
export function knownPropertyKey(
  { spaceId, property }: Pick<PropertyStateKey, 'spaceId' | 'property'>,
  { kind, id }: Pick<PropertyState, 'kind' | 'id'>,
): string {
  return `${knownPropertyPrefix(spaceId, property)}${escapeId(id)}${kind === 'trait' ? traitMark : ''}`
}

const traitMark = `${parted}t`

/** Reads the property, and the kind and id of its audience or trait, from a key of `knownPropertyKey`. */
export function knownPropertyOf(key: string): Pick<PropertyState, 'kind' | 'id'> & { property: string } {
  const [, property = '', id = '', mark] = key.slice(1).split(parted)
  const kind = mark === undefined ? 'audience' : 'trait'
  return { property: unescapeId(property), kind, id: unescapeId(id) }
}

/**
 * Returns the prefix of the keys under which the store says how each sync of an audience ended. These entries
 * are needed for parts that arrive again.
 */
export function endedSyncsPrefix(spaceId: string, audienceId: string): string {
  return `e${escapeId(spaceId)}${parted}${escapeId(audienceId)}${parted}`
}

export function endedSyncKey(sync: {
  spaceId: string
  audienceId: string
  snapshotAtMs: number
  syncId: string
}): string {
  const { spaceId, audienceId, snapshotAtMs, syncId } = sync
  return `${endedSyncsPrefix(spaceId, audienceId)}${snapshotAtMs}${parted}${escapeId(syncId)}`
}

/** Returns the `snapshotAt` of a sync from a key that `endedSyncKey` made. */
export function snapshotOfEnded(key: string): number {
  return Number(key.split(parted)[2])
}

/**
 * Returns the range of all keys that begin with `prefix`. `from` is the first key of the range, and `to` is
 * the first key after the range.
 */
export function rangeOf(prefix: string): { from: string; to: string } {
  return { from: prefix, to: prefix + last }
}

export const anyDeletion = rangeOf('d')
export const anySyncFloor = rangeOf('f')
export const anyStaged = rangeOf('g')

export function stagedRunKey(sync: number, run: number, chunk: number): string {
  return `g${sync}${parted}r${run}${parted}${chunk}`
}

export function stagedPartKey(sync: number, part: number): string {
  return `g${sync}${parted}w${part}`
}
