import { Breath } from '../../async/breath.ts'
import { cheapSteps, inPieces, type Pieces } from '../../async/pieces.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { type CatalogChanges, comparingNamed } from '../../catalog/changes.ts'
import { pieceMs } from '../../catalog-log/entries.ts'
import type { ChangeSet } from '../../catalog-log/log.ts'

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
export function differenceOf(
  before: Catalog,
  after: Catalog,
  sets: readonly ChangeSet[],
  breath = new Breath(pieceMs),
): Promise<CatalogChanges> {
  return inPieces(comparingSets(before, after, sets), breath)
}

function* comparingSets(before: Catalog, after: Catalog, sets: readonly ChangeSet[]): Pieces<CatalogChanges> {
  const ids = { source: new Set<string>(), destination: new Set<string>(), token: new Set<string>() }
  let count = 0
  for (const { put, removed } of sets)
    for (const objects of [put, removed])
      for (const { kind, id } of objects) {
        if (++count % cheapSteps === 0) yield
        ids[kind].add(id)
      }
  return yield* comparingNamed(before, after, { sources: ids.source, destinations: ids.destination })
}
