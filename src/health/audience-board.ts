import type { AudienceWord, FirstSyncWord } from './health-record.ts'

/** A destination that lacks values of a space. */
type Behind = AudienceWord['behind'][number]

/** What all living processes together tell of the values of a space. */
export type SpaceHealth = {
  readonly spaceId: string
  /** How many units were counted. */
  readonly units: number
  /** When the oldest of them was counted, in epoch milliseconds. */
  readonly atMs: number
  /** How many users have a value, by property. */
  readonly values: ReadonlyMap<string, number>
  /** How many values have properties that are too many to be told. */
  readonly otherValues: number
}

/** What all living processes together tell of audiences. */
export type AudienceHealth = {
  readonly spaces: ReadonlyMap<string, SpaceHealth>
  readonly firstSyncs: readonly FirstSyncWord[]
  readonly behind: readonly Behind[]
  /** How many first syncs and destinations are left out, because they are too many. */
  readonly untold: number
}

/** Puts together what processes tell. Each first sync is told by each process for its own units. */
export function audiencesTogether(words: readonly AudienceWord[]): AudienceHealth {
  const spaces = new Map<string, SpaceHealth>()
  for (const { space: spaceId, units, atMs, values, more } of words.flatMap((word) => word.spaces)) {
    if (units === 0) continue
    const before = spaces.get(spaceId)
    const sums = new Map(before?.values)
    for (const [property, count] of Object.entries(values))
      sums.set(property, (sums.get(property) ?? 0) + count)
    spaces.set(spaceId, {
      spaceId,
      units: (before?.units ?? 0) + units,
      atMs: Math.min(before?.atMs ?? Infinity, atMs),
      values: sums,
      otherValues: (before?.otherValues ?? 0) + more,
    })
  }
  const firstSyncs = new Map<string, FirstSyncWord>()
  for (const one of words.flatMap((word) => word.firstSyncs)) {
    const key = JSON.stringify([one.destination, one.space])
    const before = firstSyncs.get(key)
    const isWaiting = one.isWaiting && (before?.isWaiting ?? true)
    firstSyncs.set(key, { ...one, isWaiting, left: one.left + (before?.left ?? 0) })
  }
  // All processes read the same marks.
  const behind = new Map<string, Behind>()
  for (const one of words.flatMap((word) => word.behind))
    behind.set(JSON.stringify([one.destination, one.space]), one)
  return {
    spaces,
    firstSyncs: [...firstSyncs.values()],
    behind: [...behind.values()],
    untold: Math.max(0, ...words.map((word) => word.untold)),
  }
}
