import type { Change } from './records/change-record.ts'
import { compareVersions, type Version, type PropertyState } from './records/version.ts'
import { isDeepStrictEqual } from 'node:util'
import { parseJson } from '../message/json/json.ts'

/** The data of a unit about the property and the user of a change. The change is compared with this data. */
export type Known = {
  readonly held: PropertyState | undefined
  /** The time up to which the user's data in this space was deleted, in epoch milliseconds. */
  readonly deletedUpToMs: number
  /** The version of the last applied sync of the change's own audience. */
  readonly syncedAt: Version | undefined
  /**
   * The version of the last applied sync of the property's present audience. It is set only if the change
   * belongs to another audience.
   */
  readonly ownerSyncedAt: Version | undefined
}

/**
 * Returns true if a property that belongs to another audience may be taken over. This is so if the user is no
 * member of that audience, and the last sync of that audience is at least as new as the user's state. Without
 * this rule, a new audience could never take over the name of an audience that has ended.
 */
function isGivenUp({ kind, value, version }: PropertyState, ownerSyncedAt: Version | undefined): boolean {
  if (kind !== 'audience' || value !== 'false' || ownerSyncedAt === undefined) return false
  return compareVersions(version, ownerSyncedAt) <= 0
}

/**
 * Returns true if the property belongs to another audience or trait and can't be taken over, so that the new
 * value must not be written.
 */
export function isTaken(
  held: PropertyState,
  { kind, id, version }: Pick<PropertyState, 'kind' | 'id' | 'version'>,
  ownerSyncedAt: Version | undefined,
): boolean {
  if (held.id === id && held.kind === kind) return false
  return !isGivenUp(held, ownerSyncedAt) || compareVersions(version, held.version) < 0
}

export type ChangeDecision =
  /** The property belongs to another audience or trait. */
  | { kind: 'taken' }
  | { kind: 'drop'; why: 'repeated' | 'outdated' | 'deleted' }
  /** `isEmitting`: true if the value has changed, so that the new value is sent to receivers. */
  | { kind: 'write'; state: PropertyState; isEmitting: boolean }

export function decideChange(
  change: Change,
  { held, deletedUpToMs, syncedAt, ownerSyncedAt }: Known,
): ChangeDecision {
  const { kind, id, name, value, version } = change
  if (version.atMs <= deletedUpToMs) return { kind: 'drop', why: 'deleted' }
  const alive = held !== undefined && held.version.atMs > deletedUpToMs ? held : undefined
  if (alive !== undefined && isTaken(alive, change, ownerSyncedAt)) return { kind: 'taken' }
  const own = alive?.id === id && alive.kind === kind ? alive : undefined
  if (own !== undefined) {
    const order = compareVersions(version, own.version)
    if (order === 0) return { kind: 'drop', why: 'repeated' }
    if (order < 0) return { kind: 'drop', why: 'outdated' }
  }
  if (syncedAt !== undefined && compareVersions(version, syncedAt) < 0)
    return { kind: 'drop', why: 'outdated' }
  // A value that was sent before the deletion doesn't count as the same, because receivers no longer have it.
  const isSame = own !== undefined && own.since.atMs > deletedUpToMs && isSameJson(own.value, value)
  // The state keeps the exact text that was sent to receivers.
  const state: PropertyState = isSame
    ? { kind, id, name, value: own.value, version, since: own.since }
    : { kind, id, name, value, version, since: version }
  return { kind: 'write', state, isEmitting: !isSame }
}

/** The fields of a sync that are needed to decide about one user. */
export type SyncOfUser = { readonly audienceId: string; readonly name: string; readonly version: Version }

/** Returns the new state of a user after a sync, or `undefined` if the user's state doesn't change. */
export function decideSync(
  { audienceId, name, version }: SyncOfUser,
  isMember: boolean,
  { held, deletedUpToMs, ownerSyncedAt }: Omit<Known, 'syncedAt'>,
): PropertyState | undefined {
  const alive = held !== undefined && held.version.atMs > deletedUpToMs ? held : undefined
  if (isMember && version.atMs <= deletedUpToMs) return undefined
  const claim = { kind: 'audience', id: audienceId, version } as const
  if (alive !== undefined && isTaken(alive, claim, ownerSyncedAt)) return undefined
  const own = alive?.id === audienceId && alive.kind === 'audience' ? alive : undefined
  if (own === undefined && !isMember) return undefined
  if (own !== undefined) {
    if (compareVersions(own.version, version) >= 0 || (own.value === 'true') === isMember) return undefined
  }
  return {
    kind: 'audience',
    id: audienceId,
    name,
    value: isMember ? 'true' : 'false',
    version,
    since: version,
  }
}

/**
 * Returns true if two texts of canonical JSON have the same value. The order of fields in an object doesn't
 * matter.
 */
export function isSameJson(a: string, b: string): boolean {
  if (a === b) return true
  if (a.length !== b.length || !isContainer(a) || !isContainer(b)) return false
  const [one, other] = [parseJson(a), parseJson(b)]
  return one.ok && other.ok && isDeepStrictEqual(one.value, other.value)
}

function isContainer(text: string): boolean {
  return text.startsWith('{') || text.startsWith('[')
}
