import { decodeCell } from './cell.ts'
import type { StateStore } from './store.ts'
import { anySyncFloor } from './store-keys.ts'
import type { Version } from './version.ts'

/** The version of the last applied sync of each audience, by its key in the store: there are few, and each change needs one. */
export async function readSyncFloors(store: StateStore): Promise<Map<string, Version>> {
  const floors = new Map<string, Version>()
  const reader = store.range(anySyncFloor)
  try {
    for (let entries = await reader.next(1_000); entries.length > 0; entries = await reader.next(1_000)) {
      for (const [key, text] of entries) {
        const cell = decodeCell(text)
        if (cell.kind === 'sync') floors.set(key, cell.state.version)
      }
    }
  } finally {
    await reader.close()
  }
  return floors
}
