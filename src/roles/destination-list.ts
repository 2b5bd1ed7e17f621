import type { Catalog, Destination, DestinationState } from '../catalog/catalog.ts'

/** The destinations to list. A field that is `undefined` excludes none. */
export type ListQuery = {
  readonly destinationId?: string | undefined
  readonly sourceId?: string | undefined
  readonly state?: string | undefined
  /** The id after which the list begins, in the order of the catalog. */
  readonly after?: string | undefined
  readonly limit: number
}

/** A destination of the catalog. `state` is `auto_paused` if Sluice has paused a destination that is `on`. */
export type ListedDestination = { readonly destination: Destination; readonly state: DestinationState }

/** A part of a list. `next`: the value of `after` for the next part; `undefined` if there are no more. */
export type ListPart = { readonly listed: readonly ListedDestination[]; readonly next: string | undefined }

/**
 * Lists destinations in the order of the catalog. `paused`: the ids of those that Sluice has paused. If the
 * catalog doesn't have the destination `after` any more, the list begins at the start.
 */
export function listDestinations(
  { destinations }: Catalog,
  paused: ReadonlySet<string>,
  { destinationId, sourceId, state, after, limit }: ListQuery,
): ListPart {
  const listed: ListedDestination[] = []
  let isPassed = after === undefined || !destinations.has(after)
  for (const destination of destinations.values()) {
    if (!isPassed) {
      isPassed = destination.id === after
      continue
    }
    const ofIt = destination.state === 'on' && paused.has(destination.id) ? 'auto_paused' : destination.state
    if (destinationId !== undefined && destination.id !== destinationId) continue
    if (sourceId !== undefined && !destination.sources.includes(sourceId)) continue
    if (state !== undefined && ofIt !== state) continue
    if (listed.length === limit) return { listed, next: listed.at(-1)?.destination.id }
    listed.push({ destination, state: ofIt })
  }
  return { listed, next: undefined }
}

/**
 * Returns a destination as the HTTP API and `--json` show it. The result has no secrets. Of each hook it has
 * only the origin, because the path of a URL may be secret.
 */
export function destinationData({ destination, state }: ListedDestination): object {
  const { id, name, sources, filter, sharedSecret, strategy, maxInFlight, rateLimit, hooks } = destination
  return {
    id,
    name,
    state,
    sources,
    filter: filter ?? null,
    isSigned: sharedSecret !== undefined,
    strategy,
    maxInFlight,
    rateLimit: rateLimit ?? null,
    hooks: hooks.map((hook) => ({ id: hook.id, origin: hook.origin })),
  }
}
