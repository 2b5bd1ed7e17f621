import type { Catalog, Destination, DestinationState, Source } from './catalog.ts'
import { atOnce, cheapSteps, type Pieces } from '../async/pieces.ts'
import { VersionedMap } from './versioned-map.ts'

/** Entries by id that take the place of those of an earlier catalog. `undefined`: the entry is removed. */
export type CatalogPatch = {
  readonly sources: ReadonlyMap<string, Source | undefined>
  readonly destinations: ReadonlyMap<string, Destination | undefined>
}

/** The ids of the entries in which two catalogs may differ. */
export type CatalogDifference = {
  readonly sources: ReadonlySet<string>
  readonly destinations: ReadonlySet<string>
}

const origins = new WeakMap<
  Catalog,
  { readonly before: WeakRef<Catalog>; readonly difference: CatalogDifference }
>()

/**
 * Returns the same catalog with maps of which `nextCatalog` makes the next version at little cost. Without
 * this, the first change takes as long as the catalog is large.
 */
export function withVersions({ sources, destinations, destinationsBySource, version }: Catalog): Catalog {
  return {
    sources: VersionedMap.of(sources),
    destinations: VersionedMap.of(destinations),
    destinationsBySource: VersionedMap.of(destinationsBySource),
    version,
  }
}

/**
 * Makes the next catalog from the present one. This takes as long as the patch is large, and not as the
 * catalog: only the lists of destinations of the sources concerned are made anew.
 */
export function nextCatalog(before: Catalog, patch: CatalogPatch, version: string): Catalog {
  return atOnce(makingNext(before, patch, version))
}

/** Does the same in pieces. */
export function* makingNext(before: Catalog, patch: CatalogPatch, version: string): Pieces<Catalog> {
  const sources = yield* VersionedMap.of(before.sources).making(patch.sources)
  const destinations = yield* VersionedMap.of(before.destinations).making(patch.destinations)
  const lists = yield* listsOf(before, patch, destinations)
  const catalog = {
    sources,
    destinations,
    destinationsBySource: VersionedMap.of(before.destinationsBySource).with(lists),
    version,
  }
  const difference = {
    sources: new Set(patch.sources.keys()),
    destinations: new Set(patch.destinations.keys()),
  }
  origins.set(catalog, { before: new WeakRef(before), difference })
  const counts = yield* countingNext(before, catalog, difference.destinations)
  if (counts !== undefined) counted.set(catalog, counts)
  return catalog
}

/**
 * Returns what may differ between a catalog and the one that it was made from by `nextCatalog`. Returns
 * `undefined` if it was made in another way: then everything may differ.
 */
export function differenceBetween(before: Catalog, now: Catalog): CatalogDifference | undefined {
  if (before === now) return same
  const origin = origins.get(now)
  return origin?.before.deref() === before ? origin.difference : undefined
}

const same: CatalogDifference = { sources: new Set(), destinations: new Set() }

/** Returns the ids of the destinations in which two catalogs may differ. */
export function changedDestinations(before: Catalog, now: Catalog): Iterable<string> {
  return (
    differenceBetween(before, now)?.destinations ??
    new Set([...before.destinations.keys(), ...now.destinations.keys()])
  )
}

/** Counts the destinations of a catalog for which something holds. A later count costs what has changed. */
export class DestinationCount {
  readonly #holds: (destination: Destination) => boolean
  #counted: { readonly catalog: Catalog; readonly count: number } | undefined

  constructor(holds: (destination: Destination) => boolean) {
    this.#holds = holds
  }

  in(catalog: Catalog): number {
    const { catalog: before, count: counted = 0 } = this.#counted ?? {}
    const ids = before === undefined ? catalog.destinations.keys() : changedDestinations(before, catalog)
    let count = counted
    for (const id of ids) count += this.#held(catalog, id) - this.#held(before, id)
    this.#counted = { catalog, count }
    return count
  }

  #held(catalog: Catalog | undefined, id: string): 0 | 1 {
    const destination = catalog?.destinations.get(id)
    return destination !== undefined && this.#holds(destination) ? 1 : 0
  }
}

export type StateCounts = Readonly<Record<DestinationState, number>>

const counted = new WeakMap<Catalog, StateCounts>()

/** Counts the states of the next catalog, if those of the present one were counted. */
function* countingNext(
  before: Catalog,
  now: Catalog,
  ids: ReadonlySet<string>,
): Pieces<StateCounts | undefined> {
  const former = counted.get(before)
  if (former === undefined) return undefined
  const counts = { ...former }
  let count = 0
  for (const id of ids) {
    if (++count % cheapSteps === 0) yield
    const [was, is] = [before.destinations.get(id), now.destinations.get(id)]
    if (was !== undefined) counts[was.state]--
    if (is !== undefined) counts[is.state]++
  }
  return counts
}

/** Returns how many destinations of a catalog are in each state. */
export function stateCountsOf(catalog: Catalog): StateCounts {
  const known = counted.get(catalog)
  if (known !== undefined) return known
  const { before, difference } = origins.get(catalog) ?? {}
  const former = before?.deref()
  const next = former && difference && atOnce(countingNext(former, catalog, difference.destinations))
  const counts = next ?? countsOf(catalog)
  counted.set(catalog, counts)
  return counts
}

function countsOf({ destinations }: Catalog): StateCounts {
  const counts = { on: 0, off: 0, paused: 0, auto_paused: 0 }
  for (const { state } of destinations.values()) counts[state]++
  return counts
}

/** Returns the lists of destinations of the sources that a patch concerns. */
function* listsOf(
  before: Catalog,
  { sources, destinations: changed }: CatalogPatch,
  destinations: Catalog['destinations'],
): Pieces<ReadonlyMap<string, readonly Destination[] | undefined>> {
  const lists = new Map<string, readonly Destination[] | undefined>()
  for (const [id, source] of sources) {
    if (source === undefined) lists.set(id, undefined)
    else if (!before.destinationsBySource.has(id)) lists.set(id, connectedTo(id, destinations))
  }
  /** The destinations that change, by the sources that are concerned. */
  const concerned = new Map<string, string[]>()
  let count = 0
  for (const [id, now] of changed) {
    if (++count % cheapSteps === 0) yield
    const names = new Set([...(before.destinations.get(id)?.sources ?? []), ...(now?.sources ?? [])])
    for (const source of names) {
      const ids = concerned.get(source)
      if (ids === undefined) concerned.set(source, [id])
      else ids.push(id)
    }
  }
  for (const [id, ids] of concerned) {
    const list = before.destinationsBySource.get(id)
    if (list === undefined || lists.has(id)) continue
    lists.set(id, yield* listWith(list, id, { ids, changed, before }))
  }
  return lists
}

function connectedTo(sourceId: string, destinations: Catalog['destinations']): readonly Destination[] {
  return [...destinations.values()].filter(({ sources }) => sources.includes(sourceId))
}

/**
 * Returns the list of a source with changed destinations. They keep their places, and new ones come last. Few
 * changes are looked for one by one: comparing objects is much faster than looking each one up.
 */
function* listWith(
  list: readonly Destination[],
  sourceId: string,
  {
    ids,
    changed,
    before,
  }: {
    readonly ids: readonly string[]
    readonly changed: CatalogPatch['destinations']
    readonly before: Catalog
  },
): Pieces<readonly Destination[]> {
  /** What takes the place of each destination of the list that changes. */
  const replaced = new Map<Destination, Destination | undefined>()
  const added: Destination[] = []
  for (const [index, id] of ids.entries()) {
    if (index % cheapSteps === cheapSteps - 1) yield
    const given = changed.get(id)
    const was = before.destinations.get(id)
    const now = given?.sources.includes(sourceId) === true ? given : undefined
    if (was?.sources.includes(sourceId) === true) replaced.set(was, now)
    else if (now !== undefined) added.push(now)
  }
  const next: (Destination | undefined)[] = [...list]
  if (replaced.size <= mostSought) for (const [was, now] of replaced) next[list.indexOf(was)] = now
  else for (const [place, was] of list.entries()) if (replaced.has(was)) next[place] = replaced.get(was)
  const isShorter = [...replaced.values()].includes(undefined)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it has no gaps
  const made = isShorter ? next.filter((one) => one !== undefined) : (next as Destination[])
  for (const one of added) made.push(one)
  return made
}

/** The most changes that are looked for one by one in the list of a source. */
const mostSought = 20
