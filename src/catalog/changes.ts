import isEqual from 'fast-deep-equal'
import { atOnce, type Pieces } from '../async/pieces.ts'
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

/** A catalog, or the outline of an earlier one. Fields can be compared only with the catalog. */
type Compared = { readonly outline: CatalogOutline; readonly catalog?: Catalog }
type Present = Compared & { readonly catalog: Catalog }

/**
 * Compares two catalogs. Names the removed entries first, then new states, new entries and other changes. If
 * there are more than `most` in a list, the last text says how many are left out.
 */
export function changesBetween(before: Compared, after: Present, most = maxChanges): CatalogChanges {
  return atOnce(comparing(before, after, most))
}

/** Does the same as `changesBetween`, in pieces. */
export function* comparing(before: Compared, after: Present, most = maxChanges): Pieces<CatalogChanges> {
  const changes: { [List in CatalogList]?: readonly string[] } = {}
  for (const list of catalogLists) {
    const all = yield* comparingLists(list, before, after)
    if (all.length > 0) changes[list] = bounded(all, most)
  }
  return changes
}

function* comparingLists(list: CatalogList, before: Compared, after: Present): Pieces<readonly string[]> {
  const [old, now] = [before.outline[list], after.outline[list]]
  const oldEntries: ReadonlyMap<string, Destination | Source> | undefined = before.catalog?.[list]
  const removed: string[] = []
  const added: string[] = []
  const moved: string[] = []
  const edited: string[] = []
  for (const id of old.keys()) {
    if (!now.has(id)) removed.push(`-${id}`)
    yield
  }
  for (const [id, state] of now) {
    const was = old.get(id)
    if (was === undefined) added.push(`+${id}`)
    else if (was !== state) moved.push(`${id}: ${was} → ${state}`)
    yield
  }
  for (const [id, entry] of after.catalog[list]) {
    const fields = changedFields(oldEntries?.get(id), entry)
    if (fields.length > 0) edited.push(`${id}: ${fields.join(', ')}`)
    yield
  }
  return [...removed, ...moved, ...added, ...edited]
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
