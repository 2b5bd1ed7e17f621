import isEqual from 'fast-deep-equal'
import type { Catalog, Destination, Source } from './catalog.ts'
import { type CatalogList, catalogLists } from './expected.ts'
import type { CatalogOutline } from './outline.ts'

/**
 * The difference between two catalogs, for people. `-crm`: the entry was removed. `+crm`: it was added. `crm:
 * on → paused`: it has another state. `crm: hooks, rateLimit`: these fields have other values, which may be
 * secret and are never named. An empty list is left out.
 */
export type CatalogChanges = { readonly [List in CatalogList]?: readonly string[] }

/** The most changes of a list that are named. */
const maxChanges = 50

/**
 * Compares two catalogs. Names the removed entries first, then new states, new entries and other changes. If
 * there are more than `most` in a list, the last text says how many are left out.
 *
 * `before` is the earlier catalog itself, or its outline. Fields can be compared only with the catalog.
 */
export function changesBetween(
  before: { readonly outline: CatalogOutline; readonly catalog?: Catalog },
  after: { readonly outline: CatalogOutline; readonly catalog: Catalog },
  most = maxChanges,
): CatalogChanges {
  return Object.fromEntries(
    catalogLists.flatMap((list) => {
      const [old, now] = [before.outline[list], after.outline[list]]
      const [oldEntries, entries] = [before.catalog?.[list], after.catalog[list]]
      const removed = [...old.keys()].filter((id) => !now.has(id)).map((id) => `-${id}`)
      const added = [...now.keys()].filter((id) => !old.has(id)).map((id) => `+${id}`)
      const moved = [...now].flatMap(([id, state]) => {
        const was = old.get(id)
        return was === undefined || was === state ? [] : [`${id}: ${was} → ${state}`]
      })
      const edited = [...entries].flatMap(([id, entry]) => {
        const fields = changedFields(oldEntries?.get(id), entry)
        return fields.length === 0 ? [] : [`${id}: ${fields.join(', ')}`]
      })
      const all = [...removed, ...moved, ...added, ...edited]
      return all.length === 0 ? [] : [[list, bounded(all, most)]]
    }),
  )
}

function bounded(changes: readonly string[], most: number): readonly string[] {
  const left = changes.length - most
  return left > 0 ? [...changes.slice(0, most), `and ${left} more`] : changes
}

/** Returns the names of the fields whose values differ, as the catalog file has them, without the state. */
function changedFields(old: Destination | Source | undefined, now: Destination | Source): readonly string[] {
  // An entry that an edit doesn't change is the same object.
  if (old === undefined || old === now) return []
  const values: Readonly<Record<string, unknown>> = { ...old }
  const fields = Object.entries(now)
    .filter(([field, value]) => !states.has(field) && !isEqual(values[field], value))
    .map(([field]) => nameInFile[field] ?? field)
  return [...new Set(fields)]
}

const states: ReadonlySet<string> = new Set(['state', 'enabled'])

const nameInFile: Readonly<Record<string, string>> = {
  sharedSecretEndsAtMs: 'sharedSecretEndsAt',
  standardWebhooks: 'signing',
  signingKeys: 'signing',
  maxInFlightSick: 'maxInFlight',
  autoPauseMs: 'autoPause',
  timeoutMs: 'timeout',
}
