import type { PropertySubject } from './property-state.ts'
import type { DeletionSubject, Subject, SyncSubject } from './state-record.ts'

/**
 * Keys of a unit's store. Ids are escaped so that they can be parted by a character that none of them has,
 * and so that the order of the keys' bytes (UTF-8, as LevelDB has it) is the order that JavaScript compares
 * ids in (UTF-16): a sync walks through both side by side. Half a surrogate pair, which has no UTF-8, keeps
 * its meaning too.
 */

/** Between ids; in none that is escaped. */
export const parted = '\u007f'
/** With a letter, what stands for `parted` and for itself. */
const low = '\u0080'
/** With four digits, what stands for a unit from this one on. */
const high = '\ud7ff'
const lowest = 0xd7ff
/** Above all that an escaped id holds. */
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

/** Each code is ordered as what it stands for, and none is the beginning of another. */
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

/** The keys of all states of a space are this and more: by property, and then by user. */
export function statesPrefix(spaceId: string): string {
  return `s${escapeId(spaceId)}${parted}`
}

/** The keys of all users' states of a property are this and the escaped user. */
export function propertyPrefix(spaceId: string, property: string): string {
  if (lastProperty.spaceId !== spaceId || lastProperty.property !== property) {
    const prefix = `${statesPrefix(spaceId)}${escapeId(property)}${parted}`
    lastProperty = { spaceId, property, prefix }
  }
  return lastProperty.prefix
}

/** There are few properties, and users one after the other have the same. */
let lastProperty = { spaceId: '', property: '', prefix: `s${parted}${parted}` }

/** The keys of all users' deletion floors of a source are this and the escaped user. */
export function deletionPrefix(sourceId: string): string {
  return `d${escapeId(sourceId)}${parted}`
}

export function subjectKey(subject: Subject): string {
  switch (subject.kind) {
    case 'property':
      return propertyPrefix(subject.spaceId, subject.property) + escapeId(subject.userId)
    case 'deletion':
      return deletionPrefix(subject.sourceId) + escapeId(subject.userId)
    case 'sync':
      return `f${escapeId(subject.spaceId)}${parted}${escapeId(subject.audienceId)}`
  }
}

/** Where the deletion floor of a property is. */
export function deletionKeyOf({ userId, spaceId }: Pick<PropertySubject, 'userId' | 'spaceId'>): string {
  return deletionPrefix(spaceId) + escapeId(userId)
}

/** Of a key that `subjectKey` made. */
export function subjectOf(key: string): Subject | undefined {
  const parts = key.slice(1).split(parted).map(unescapeId)
  const [first = '', second = '', third = ''] = parts
  switch (key[0]) {
    case 's':
      return { kind: 'property', spaceId: first, property: second, userId: third } satisfies PropertySubject
    case 'd':
      return { kind: 'deletion', sourceId: first, userId: second } satisfies DeletionSubject
    case 'f':
      return { kind: 'sync', spaceId: first, audienceId: second } satisfies SyncSubject
    default:
      return undefined
  }
}

/** Which properties there are in a space: their keys are this and more. */
export function knownPropertiesPrefix(spaceId: string): string {
  return `p${escapeId(spaceId)}${parted}`
}

/** Which audiences and traits have written a property. */
export function knownPropertyKey(spaceId: string, property: string, id: string): string {
  return `${knownPropertiesPrefix(spaceId)}${escapeId(property)}${parted}${escapeId(id)}`
}

/** Of keys that `knownPropertyKey` made. */
export function knownPropertyOf(key: string): { property: string; id: string } {
  const [, property = '', id = ''] = key.slice(1).split(parted)
  return { property: unescapeId(property), id: unescapeId(id) }
}

/**
 * What came of a sync, for parts of it that come again: the keys of all syncs of an audience are this and
 * more.
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

/** The snapshotAt of the sync of such a key. */
export function snapshotOfEnded(key: string): number {
  return Number(key.split(parted)[2])
}

/** All keys that begin with `prefix`: from the first of the two, to before the second. */
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
