import type { Change } from './change-record.ts'
import type { PropertyState } from './property-state.ts'
import { compareVersions, type Version } from './version.ts'
import { isSameJson } from './same-json.ts'

/** What is known where a change comes in. */
export type Known = {
  readonly held: PropertyState | undefined
  /** Everything of the user in this space up to this time was deleted. */
  readonly deletedUpToMs: number
  /** The version of the last sync of this audience. */
  readonly syncedAt: Version | undefined
  /** That of the audience whose state is held, where it is another. */
  readonly ownerSyncedAt: Version | undefined
}

/**
 * Whether another audience still has the property of the user: not where the user is no member of it and its
 * last sync has left it so. Else who comes after an audience that has ended could never have its name.
 */
function isGivenUp({ kind, value, version }: PropertyState, ownerSyncedAt: Version | undefined): boolean {
  if (kind !== 'audience' || value !== 'false' || ownerSyncedAt === undefined) return false
  return compareVersions(version, ownerSyncedAt) <= 0
}

/** Whether what is held of another audience or trait keeps a newer version of this one out. */
export function isTaken(
  held: PropertyState,
  { kind, id, version }: Pick<PropertyState, 'kind' | 'id' | 'version'>,
  ownerSyncedAt: Version | undefined,
): boolean {
  if (held.id === id && held.kind === kind) return false
  return !isGivenUp(held, ownerSyncedAt) || compareVersions(version, held.version) < 0
}

export type ChangeDecision =
  /** The property is another audience's, or a trait's. */
  | { kind: 'taken' }
  | { kind: 'drop'; why: 'repeated' | 'outdated' | 'deleted' }
  /** `isEmitting`: the value is another one, and receivers are to be told. */
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
  // What receivers were told before the deletion they don't have any more.
  const isSame = own !== undefined && own.since.atMs > deletedUpToMs && isSameJson(own.value, value)
  // The value that receivers have is the one that was sent, to the letter.
  const state: PropertyState = isSame
    ? { kind, id, name, value: own.value, version, since: own.since }
    : { kind, id, name, value, version, since: version }
  return { kind: 'write', state, isEmitting: !isSame }
}

/** A sync, as far as one user is concerned. */
export type SyncOfUser = { readonly audienceId: string; readonly name: string; readonly version: Version }

/** The state that an applied sync gives a user, or `undefined` where nothing changes. */
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
