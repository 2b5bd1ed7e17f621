import isEqual from 'fast-deep-equal'
import type { Pieces } from '../async/pieces.ts'
import type { Catalog, Destination, Source } from './catalog.ts'
import { type CatalogList, catalogLists } from './expected.ts'
import { type CatalogOutline, entryState } from './outline.ts'

/**
 * The difference between two catalogs, for people. `-crm`: the entry was removed. `+crm`: it was added. `crm:
 * on → paused`: it has another state. `crm: hooks, rateLimit`: these fields have other values, which may be
 * secret and are never named. An empty list is left out.
 */
export type CatalogChanges = { readonly [List in CatalogList]?: readonly string[] }

/** How many entries are compared before the work may pause: far less than a millisecond. */
const inPiece = 16
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
  const changes: { [List in CatalogList]?: readonly string[] } = {}
  for (const list of catalogLists) {
    const all = differencesIn(list, before, after)
    if (all.length > 0) changes[list] = bounded(all, most)
  }
  return changes
}

/** The names of what may differ. */
type Names = { readonly [List in CatalogList]: ReadonlySet<string> }

/** Compares only what is named, in pieces. */
export function* comparingNamed(before: Catalog, after: Catalog, names: Names): Pieces<CatalogChanges> {
  const changes: { [List in CatalogList]?: readonly string[] } = {}
  for (const list of catalogLists) {
    const found = new Found()
    let count = 0
    for (const id of names[list]) {
      if (++count % inPiece === 0) yield
      const [was, now] = [before[list].get(id), after[list].get(id)]
      found.add(id, sideOf(was && entryState(was), was), sideOf(now && entryState(now), now))
    }
    const all = found.inOrder()
    if (all.length > 0) changes[list] = bounded(all, maxChanges)
  }
  return changes
}

type Entry = Destination | Source
/** An entry before or after. `entry`: `undefined` if only its state is known. */
type Side = { readonly state: string; readonly entry: Entry | undefined }

function sideOf(state: string | undefined, entry: Entry | undefined): Side | undefined {
  return state === undefined ? undefined : { state, entry }
}

/** The differences that were found in a list. */
class Found {
  readonly #removed: string[] = []
  readonly #moved: string[] = []
  readonly #added: string[] = []
  readonly #edited: string[] = []

  add(id: string, was: Side | undefined, now: Side | undefined): void {
    if (now === undefined) {
      if (was !== undefined) this.#removed.push(`-${id}`)
      return
    }
    if (was === undefined) {
      this.#added.push(`+${id}`)
      return
    }
    if (was.state !== now.state) this.#moved.push(`${id}: ${was.state} → ${now.state}`)
    const fields = changedFields(was.entry, now.entry)
    if (fields.length > 0) this.#edited.push(`${id}: ${fields.join(', ')}`)
  }

  inOrder(): readonly string[] {
    return [...this.#removed, ...this.#moved, ...this.#added, ...this.#edited]
  }
}

function differencesIn(list: CatalogList, before: Compared, after: Present): readonly string[] {
  const [old, now] = [before.outline[list], after.outline[list]]
  const found = new Found()
  for (const id of new Set([...old.keys(), ...now.keys()]))
    found.add(
      id,
      sideOf(old.get(id), before.catalog?.[list].get(id)),
      sideOf(now.get(id), after.catalog[list].get(id)),
    )
  return found.inOrder()
}

function bounded(changes: readonly string[], most: number): readonly string[] {
  const left = changes.length - most
  return left > 0 ? [...changes.slice(0, most), `and ${left} more`] : changes
}

/** Returns the names of the fields whose values differ, as the catalog file has them, without the state. */
function changedFields(old: Entry | undefined, now: Entry | undefined): readonly string[] {
  // An entry that an edit doesn't change is the same object.
  if (old === undefined || now === undefined || old === now) return []
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
