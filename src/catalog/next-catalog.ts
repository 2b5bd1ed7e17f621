import type { Catalog, Destination, DestinationState, Source } from './catalog.ts'

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
 * Makes the next catalog from the present one. This takes as long as the patch is large, and not as the
 * catalog: only the lists of destinations of the sources concerned are made anew.
 */
export function nextCatalog(before: Catalog, patch: CatalogPatch, version: string): Catalog {
  const sources = patched(before.sources, patch.sources)
  const destinations = patched(before.destinations, patch.destinations)
  const catalog = {
    sources,
    destinations,
    destinationsBySource: patched(before.destinationsBySource, listsOf(before, patch, destinations)),
    version,
  }
  const difference = {
    sources: new Set(patch.sources.keys()),
    destinations: new Set(patch.destinations.keys()),
  }
  origins.set(catalog, { before: new WeakRef(before), difference })
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

export type StateCounts = Readonly<Record<DestinationState, number>>

const counted = new WeakMap<Catalog, StateCounts>()

/** Returns how many destinations of a catalog are in each state. */
export function stateCountsOf(catalog: Catalog): StateCounts {
  const known = counted.get(catalog)
  if (known !== undefined) return known
  const origin = origins.get(catalog)
  const before = origin?.before.deref()
  const former = before && counted.get(before)
  const counts = { on: 0, off: 0, paused: 0, auto_paused: 0, ...former }
  if (origin === undefined || before === undefined || former === undefined) {
    for (const { state } of catalog.destinations.values()) counts[state]++
  } else {
    for (const id of origin.difference.destinations) {
      const [was, is] = [before.destinations.get(id), catalog.destinations.get(id)]
      if (was !== undefined) counts[was.state]--
      if (is !== undefined) counts[is.state]++
    }
  }
  counted.set(catalog, counts)
  return counts
}

/** Returns the lists of destinations of the sources that a patch concerns. */
function listsOf(
  before: Catalog,
  { sources, destinations: changed }: CatalogPatch,
  destinations: Catalog['destinations'],
): ReadonlyMap<string, readonly Destination[] | undefined> {
  const lists = new Map<string, readonly Destination[] | undefined>()
  for (const [id, source] of sources) {
    if (source === undefined) lists.set(id, undefined)
    else if (!before.destinationsBySource.has(id)) lists.set(id, connectedTo(id, destinations))
  }
  const concerned = new Set<string>()
  for (const [id, now] of changed)
    for (const source of [...(before.destinations.get(id)?.sources ?? []), ...(now?.sources ?? [])])
      concerned.add(source)
  for (const id of concerned) {
    const list = before.destinationsBySource.get(id)
    if (list !== undefined && !lists.has(id)) lists.set(id, listWith(list, id, { changed, before }))
  }
  return lists
}

function connectedTo(sourceId: string, destinations: Catalog['destinations']): readonly Destination[] {
  return [...destinations.values()].filter(({ sources }) => sources.includes(sourceId))
}

/**
 * Returns the list of a source with changed destinations. They keep their places, and new ones come last. Few
 * changes are looked for one by one: comparing objects is much faster than looking each one up by its id.
 */
function listWith(
  list: readonly Destination[],
  sourceId: string,
  { changed, before }: { readonly changed: CatalogPatch['destinations']; readonly before: Catalog },
): readonly Destination[] {
  const next: (Destination | undefined)[] = [...list]
  const places = changed.size > mostSought ? new Map(list.map((one, place) => [one, place])) : undefined
  let isShorter = false
  for (const [id, now] of changed) {
    const was = before.destinations.get(id)
    const place = was === undefined ? -1 : (places?.get(was) ?? (places ? -1 : list.indexOf(was)))
    const isConnected = now?.sources.includes(sourceId) === true
    if (place >= 0) next[place] = isConnected ? now : undefined
    else if (isConnected) next.push(now)
    if (place >= 0 && !isConnected) isShorter = true
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it has no gaps
  return isShorter ? next.filter((one) => one !== undefined) : (next as readonly Destination[])
}

/** The most changes that are looked for one by one in the list of a source. */
const mostSought = 100

/**
 * A map of which a few values are others than in an earlier map. `undefined`: the key isn't there any more.
 */
type Patch<V> = ReadonlyMap<string, V | undefined>

/**
 * A map may have so many changed keys beside an earlier map. Each further version copies them, and a whole
 * map is made once there are more. With 100,000 entries, both together cost least at about their square root.
 */
const mostPatched = 256

/**
 * Returns a map with some other values. The time that this takes depends on the number of changes, and not on
 * the size of the map. A changed key keeps its place, and a new one comes last.
 */
function patched<V>(before: ReadonlyMap<string, V>, changes: Patch<V>): ReadonlyMap<string, V> {
  if (changes.size === 0) return before
  const whole = before instanceof PatchedMap ? before.whole : before
  const patch = new Map(before instanceof PatchedMap ? before.patch : [])
  for (const [key, value] of changes) {
    // A key that was removed comes last if it is added again.
    if (patch.has(key) && patch.get(key) === undefined && !whole.has(key)) patch.delete(key)
    patch.set(key, value)
  }
  const map = new PatchedMap(whole, patch)
  return patch.size > mostPatched ? new Map(map) : map
}

class PatchedMap<V> implements ReadonlyMap<string, V> {
  readonly whole: ReadonlyMap<string, V>
  readonly patch: Patch<V>
  readonly size: number

  constructor(whole: ReadonlyMap<string, V>, patch: Patch<V>) {
    this.whole = whole
    this.patch = patch
    let { size } = whole
    for (const [key, value] of patch) size += Number(value !== undefined) - Number(whole.has(key))
    this.size = size
  }

  get(key: string): V | undefined {
    const changed = this.patch.get(key)
    return changed !== undefined || this.patch.has(key) ? changed : this.whole.get(key)
  }

  has(key: string): boolean {
    return this.get(key) !== undefined
  }

  *entries(): MapIterator<[string, V]> {
    for (const [key, value] of this.whole) {
      if (!this.patch.has(key)) yield [key, value]
      else {
        const changed = this.patch.get(key)
        if (changed !== undefined) yield [key, changed]
      }
    }
    for (const [key, value] of this.patch) if (value !== undefined && !this.whole.has(key)) yield [key, value]
  }

  *keys(): MapIterator<string> {
    for (const [key] of this.entries()) yield key
  }

  *values(): MapIterator<V> {
    for (const [, value] of this.entries()) yield value
  }

  [Symbol.iterator](): MapIterator<[string, V]> {
    return this.entries()
  }

  forEach(callback: (value: V, key: string, map: ReadonlyMap<string, V>) => void): void {
    for (const [key, value] of this.entries()) callback(value, key, this)
  }
}
