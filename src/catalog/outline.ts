import type { Catalog, Destination, Source } from './catalog.ts'
import type { CatalogList } from './expected.ts'

/**
 * The entries of a catalog by id, each with its state. It has no secret, so a process can keep it on its
 * disk. A source is `on` or `off`, and a destination has the state of the catalog file.
 */
export type CatalogOutline = { readonly version: string } & {
  readonly [List in CatalogList]: ReadonlyMap<string, string>
}

export function outlineOf({ version, sources, destinations }: Catalog): CatalogOutline {
  return {
    version,
    sources: new Map([...sources.values()].map((source) => [source.id, entryState(source)])),
    destinations: new Map([...destinations.values()].map((one) => [one.id, entryState(one)])),
  }
}

export function entryState(entry: Source | Destination): string {
  if ('state' in entry) return entry.state
  return entry.enabled ? 'on' : 'off'
}
