import { decodeState, type SyncFloor } from '../audience/records/state-record.ts'
import { compareVersions } from '../audience/records/version.ts'

/** An audience whose last sync was not applied by all units. */
export type UnevenAudience = {
  readonly spaceId: string
  readonly audienceId: string
  /**
   * The units whose last sync of the audience is older than the latest sync, and the units that have applied
   * no sync of the audience.
   */
  readonly units: readonly number[]
}

type Audience = { spaceId: string; audienceId: string; floors: Map<number, SyncFloor> }

/**
 * Collects the last sync of each audience in each unit. After a growth, users of several old units are in one
 * new unit, which has only one last sync for each audience. So the last sync must be the same in all old
 * units.
 */
export class SyncFloors {
  readonly #audiences = new Map<string, Audience>()

  /** Remembers the sync that a record of `memberships` reports. Ignores a record that reports no sync. */
  take(unit: number, key: Buffer | null, value: Buffer | null): void {
    if (key === null || !key.subarray(0, syncKeyBegins.length).equals(syncKeyBegins)) return
    const decoded = decodeState(key, value)
    if (!decoded.ok || decoded.record.stateKey.kind !== 'sync') return
    const { stateKey, state } = decoded.record
    const name = key.toString()
    const audience = this.#audiences.get(name) ?? { ...stateKey, floors: new Map<number, SyncFloor>() }
    this.#audiences.set(name, audience)
    const held = audience.floors.get(unit)
    if (state === null) audience.floors.delete(unit)
    else if ('syncId' in state && (held === undefined || compareVersions(state.version, held.version) >= 0))
      audience.floors.set(unit, state)
  }

  /** Returns the audiences whose last sync differs among the first `units` units. */
  uneven(units: number): readonly UnevenAudience[] {
    return [...this.#audiences.values()].flatMap(({ spaceId, audienceId, floors }) => {
      if (floors.size === 0) return []
      const latest = [...floors.values()].reduce((a, b) =>
        compareVersions(a.version, b.version) >= 0 ? a : b,
      )
      const others = Array.from({ length: units }, (_, unit) => unit).filter(
        (unit) => !isSame(floors.get(unit), latest),
      )
      return others.length === 0 ? [] : [{ spaceId, audienceId, units: others }]
    })
  }
}

/** The beginning of the keys that `encodeStateKey` writes for syncs. */
const syncKeyBegins = Buffer.from('[null,')

function isSame(a: SyncFloor | undefined, b: SyncFloor): boolean {
  return a?.syncId === b.syncId && a.version.atMs === b.version.atMs
}
