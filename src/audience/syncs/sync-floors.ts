import { decodeEntry } from '../store/entry.ts'
import type { StateStore } from '../store/store.ts'
import { anySyncFloor } from '../store/store-keys.ts'
import type { Version } from '../records/version.ts'

/**
 * Reads the version of the last applied sync of each audience, by the key of the audience's sync floor in the
 * store. All versions are kept in memory, because there are few audiences and each change needs a version.
 */
export async function readSyncFloors(store: StateStore): Promise<Map<string, Version>> {
  const floors = new Map<string, Version>()
  const reader = store.range(anySyncFloor)
  try {
    for (let entries = await reader.next(1_000); entries.length > 0; entries = await reader.next(1_000)) {
      for (const [key, text] of entries) {
        const entry = decodeEntry(text)
        if (entry.kind === 'sync') floors.set(key, entry.state.version)
      }
    }
  } finally {
    await reader.close()
  }
  return floors
}
