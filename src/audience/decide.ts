import type { Change } from './change.ts'
import type { PropertyState } from './state-record.ts'
import { compareVersions, type Version } from './version.ts'
import { isSameJson } from './same-json.ts'

/** What is known where a change comes in. */
export type Known = {
  readonly held: PropertyState | undefined
  /** Everything of the user in this space up to this time was deleted. */
  readonly deletedUpToMs: number
  /** The version of the last sync of this audience. */
  readonly syncedAt: Version | undefined
}

export type ChangeDecision =
  /** The property is another audience's, or a trait's. */
  | { kind: 'taken' }
  | { kind: 'drop'; why: 'repeated' | 'outdated' | 'deleted' }
  /** `isLoud`: the value is another one, and receivers are to be told. */
  | { kind: 'write'; state: PropertyState; isLoud: boolean }

export function decideChange(change: Change, { held, deletedUpToMs, syncedAt }: Known): ChangeDecision {
  const { kind, id, name, value, version } = change
  if (version.atMs <= deletedUpToMs) return { kind: 'drop', why: 'deleted' }
  const alive = held !== undefined && held.version.atMs > deletedUpToMs ? held : undefined
  if (alive !== undefined && (alive.id !== id || alive.kind !== kind)) return { kind: 'taken' }
  if (alive !== undefined) {
    const order = compareVersions(version, alive.version)
    if (order === 0) return { kind: 'drop', why: 'repeated' }
    if (order < 0) return { kind: 'drop', why: 'outdated' }
  }
  if (syncedAt !== undefined && compareVersions(version, syncedAt) < 0)
    return { kind: 'drop', why: 'outdated' }
  const isSame = alive !== undefined && isSameJson(alive.value, value)
  // The value that receivers have is the one that was sent, to the letter.
  const state: PropertyState = isSame
    ? { kind, id, name, value: alive.value, version, since: alive.since }
    : { kind, id, name, value, version, since: version }
  return { kind: 'write', state, isLoud: !isSame }
}

/** A sync, as far as one user is concerned. */
export type SyncOfUser = { readonly audienceId: string; readonly name: string; readonly version: Version }

/** The state that an applied sync gives a user, or `undefined` where nothing changes. */
export function decideSync(
  { audienceId, name, version }: SyncOfUser,
  isMember: boolean,
  { held, deletedUpToMs }: Omit<Known, 'syncedAt'>,
): PropertyState | undefined {
  const alive = held !== undefined && held.version.atMs > deletedUpToMs ? held : undefined
  if (isMember && version.atMs <= deletedUpToMs) return undefined
  if (alive === undefined && !isMember) return undefined
  if (alive !== undefined) {
    if (alive.kind !== 'audience' || alive.id !== audienceId) return undefined
    if (compareVersions(alive.version, version) >= 0 || (alive.value === 'true') === isMember)
      return undefined
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
