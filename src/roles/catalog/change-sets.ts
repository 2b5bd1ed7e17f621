import { Breath } from '../../async/breath.ts'
import { inPieces } from '../../async/pieces.ts'
import { type Catalog, createCatalog } from '../../catalog/catalog.ts'
import { type CatalogChanges, comparing } from '../../catalog/changes.ts'
import { outlineOf } from '../../catalog/outline.ts'
import { pieceMs } from '../../catalog-log/entries.ts'
import type { ChangeSet } from '../../catalog-log/log.ts'
import type { ObjectKind, ObjectName } from '../../catalog-log/names.ts'

/**
 * Change sets with more objects than this make several catalogs, one after the other. Each listener does its
 * work for a catalog in one piece. A single change set is never split.
 */
const mostTogether = 100

/** Returns the next change sets that make a catalog together: at least one. */
export function firstSets(sets: readonly ChangeSet[], from: number): readonly ChangeSet[] {
  let to = from
  for (let objects = 0; to < sets.length; to++) {
    const { put = [], removed = [] } = sets[to] ?? {}
    objects += put.length + removed.length
    if (objects > mostTogether && to > from) break
  }
  return sets.slice(from, to)
}

/** Compares only what the change sets name. */
export async function differenceOf(
  before: Catalog,
  after: Catalog,
  sets: readonly ChangeSet[],
  breath = new Breath(pieceMs),
): Promise<CatalogChanges> {
  const names = sets.flatMap(({ put, removed }) => [...put, ...removed])
  const only = (catalog: Catalog): Catalog =>
    createCatalog(
      entriesOf(names, 'source', catalog.sources),
      entriesOf(names, 'destination', catalog.destinations),
      catalog.version,
    )
  const [old, now] = [only(before), only(after)]
  const compared = { outline: outlineOf(old), catalog: old }
  return inPieces(comparing(compared, { outline: outlineOf(now), catalog: now }), breath)
}

function entriesOf<T>(
  names: readonly ObjectName[],
  kind: ObjectKind,
  entries: ReadonlyMap<string, T>,
): readonly T[] {
  const ids = new Set(names.filter((name) => name.kind === kind).map(({ id }) => id))
  return [...ids].flatMap((id) => entries.get(id) ?? [])
}
