import { isDeepStrictEqual } from 'node:util'

/** What the records of a source are: Segment messages, or changes of audiences and computed traits. */
export type SourceKind = 'events' | 'audiences'

/**
 * `off`: nothing is routed to it. `paused`: what is routed to it is parked, and delivered when it is `on`
 * again.
 */
export type DestinationState = 'on' | 'off' | 'paused'

/** `all`: the first attempt goes to every hook at once. `failover`: to one hook after the other. */
export type Strategy = 'all' | 'failover'

export type Source = {
  /** The value of the records' `source-id` header. */
  readonly id: string
  /** For people; the id when the catalog names none. */
  readonly name: string
  readonly kind: SourceKind
  readonly enabled: boolean
  /** Keys that clients of the gateway send. No two sources share one. */
  readonly writeKeys: readonly string[]
  /**
   * Keys that servers send with deletions and audience changes; sources may share one. Never to be logged.
   */
  readonly serverKeys: readonly string[]
  /** Most messages a second that one gateway process takes; `undefined`: any number. */
  readonly maxPerSecond: number | undefined
}

/** One URL of a destination. It passed the rules of `hook-rules.ts`, so undici takes it as it is. */
export type Hook = {
  /**
   * Unique within its destination; from the URL when the catalog names none, so it doesn't depend on the
   * order.
   */
  readonly id: string
  /** The normal form of the URL: ASCII, with a path. */
  readonly url: string
  /** `https://example.com:8443` */
  readonly origin: string
  /** Path and query, at least `/`. */
  readonly path: string
  /** Name and value, in the order of the catalog, names as they were written. */
  readonly headers: readonly (readonly [name: string, value: string])[]
}

/**
 * A destination. While its definition stays the same, each new version of the catalog holds the same object.
 */
export type Destination = {
  readonly id: string
  /** For people; the id when the catalog names none. */
  readonly name: string
  readonly state: DestinationState
  /** Ids of sources, each of them in the catalog. */
  readonly sources: readonly string[]
  /** Key of `X-Signature`; `undefined`: requests aren't signed. Never to be logged. */
  readonly sharedSecret: string | undefined
  /**
   * Signs beside `sharedSecret` while the receiver changes to it; only with `standardWebhooks`. Never to be
   * logged.
   */
  readonly nextSharedSecret: string | undefined
  /** Requests carry the headers of Standard Webhooks beside `X-Signature`; only with a `sharedSecret`. */
  readonly standardWebhooks: boolean
  readonly strategy: Strategy
  /** Most requests of this destination in flight at once, in one process. */
  readonly maxInFlight: number
  /** The same for each hook that isn't well; absent where the definition names no number. */
  readonly maxInFlightSick?: number | undefined
  /** Attempts a second over all workers, and at once after a pause. */
  readonly rateLimit: { readonly perSecond: number; readonly burst: number } | undefined
  /** One to five. */
  readonly hooks: readonly Hook[]
}

/** One version of the sources and destinations. It is never changed; an edit makes another one. */
export type Catalog = {
  readonly sources: ReadonlyMap<string, Source>
  readonly destinations: ReadonlyMap<string, Destination>
  /** For each source of the catalog its destinations, whatever their state, in the order of the catalog. */
  readonly destinationsBySource: ReadonlyMap<string, readonly Destination[]>
  /** The first 12 hex characters of the SHA-256 of the text. */
  readonly version: string
}

/** Joins sources and destinations into a catalog. Each source that a destination names is among `sources`. */
export function createCatalog(
  sources: readonly Source[],
  destinations: readonly Destination[],
  version: string,
): Catalog {
  const bySource = new Map<string, Destination[]>(sources.map(({ id }) => [id, []]))
  for (const destination of destinations) {
    for (const id of destination.sources) bySource.get(id)?.push(destination)
  }
  return {
    sources: new Map(sources.map((source) => [source.id, source])),
    destinations: new Map(destinations.map((destination) => [destination.id, destination])),
    destinationsBySource: bySource,
    version,
  }
}

/**
 * `next` with the objects of `previous` wherever a source or a destination is defined as before: whoever
 * holds something for a destination (a lane, a pool) sees by `===` whether to make it anew.
 */
export function keepUnchanged(previous: Catalog, next: Catalog): Catalog {
  return createCatalog(
    keep(previous.sources, next.sources),
    keep(previous.destinations, next.destinations),
    next.version,
  )
}

function keep<T extends { readonly id: string }>(
  before: ReadonlyMap<string, T>,
  after: ReadonlyMap<string, T>,
): readonly T[] {
  return [...after.values()].map((now) => {
    const old = before.get(now.id)
    return old !== undefined && isDeepStrictEqual(old, now) ? old : now
  })
}
