import { isDeepStrictEqual } from 'node:util'

/** The kind of a source's records: Segment messages, or changes of audiences and computed traits. */
export type SourceKind = 'events' | 'audiences'

/**
 * The state of a destination. `off`: nothing is routed to it. `paused`: its deliveries wait on the retry
 * ladder until the destination is `on` again. `auto_paused`: the destination is `on` in the catalog, but
 * Sluice has paused it because its URLs have failed for too long. Its deliveries become dead letters.
 */
export type DestinationState = 'on' | 'off' | 'paused' | 'auto_paused'

/**
 * The order of the requests of an attempt. `all`: all hooks are asked at once. `failover`: one hook is asked
 * after the other, until one accepts the message.
 */
export type Strategy = 'all' | 'failover'

export type Source = {
  /** The value of the records' `source-id` header. */
  readonly id: string
  /** A name for people. If the catalog has no name, this is the id. */
  readonly name: string
  readonly kind: SourceKind
  readonly enabled: boolean
  /** Keys that clients of the gateway send. No two sources share one. */
  readonly writeKeys: readonly string[]
  /**
   * Keys that servers send with deletions and audience changes. Sources may share one. They must never be
   * logged.
   */
  readonly serverKeys: readonly string[]
  /** Limit on messages a second that one gateway process takes; `undefined`: no limit. */
  readonly maxPerSecond: number | undefined
}

/** A URL of a destination. It fulfils the rules of `hook-rules.ts`, so undici accepts it as it is. */
export type Hook = {
  /**
   * The id, unique within its destination. If the catalog has no id, it is made from the URL, so it doesn't
   * depend on the order of the hooks.
   */
  readonly id: string
  /** The normal form of the URL: ASCII, with a path. */
  readonly url: string
  /** `https://example.com:8443` */
  readonly origin: string
  /** Path and query, at least `/`. */
  readonly path: string
  /** Names and values, in the order of the catalog. Names are spelled as in the catalog. */
  readonly headers: readonly (readonly [name: string, value: string])[]
}

/**
 * A destination. While its definition stays the same, each new version of the catalog holds the same object.
 */
export type Destination = {
  readonly id: string
  /** A name for people. If the catalog has no name, this is the id. */
  readonly name: string
  readonly state: DestinationState
  /** Ids of sources, each of them in the catalog. */
  readonly sources: readonly string[]
  /** The key of `X-Signature`. `undefined`: requests aren't signed. The key must never be logged. */
  readonly sharedSecret: string | undefined
  /**
   * A second secret. It signs in addition to `sharedSecret`, until the receiver has changed to the second
   * secret. It is set only with `standardWebhooks` or `sharedSecretEndsAtMs`, and must never be logged.
   */
  readonly nextSharedSecret: string | undefined
  /**
   * The time from which `nextSharedSecret` signs alone, in epoch milliseconds. It is set only with a
   * `nextSharedSecret`.
   */
  readonly sharedSecretEndsAtMs?: number | undefined
  /**
   * True if requests have the headers of Standard Webhooks in addition to `X-Signature`. It is true only with
   * a `sharedSecret`.
   */
  readonly standardWebhooks: boolean
  readonly strategy: Strategy
  /** Limit on deliveries to this destination in flight at once, in one process. */
  readonly maxInFlight: number
  /**
   * Limit on requests in flight to each failing hook: the definition's `maxInFlight`. `undefined` if the
   * definition has none.
   */
  readonly maxInFlightSick?: number | undefined
  /** Limit on attempts a second over all workers, and on the burst of attempts after an idle time. */
  readonly rateLimit: { readonly perSecond: number; readonly burst: number } | undefined
  /**
   * The time for which all URLs must fail before Sluice pauses the destination automatically, in
   * milliseconds. 0: Sluice never pauses it. `undefined`: the setting `notices.autoPause` applies.
   */
  readonly autoPauseMs?: number | undefined
  /** The hooks, one to five. */
  readonly hooks: readonly Hook[]
}

/** A version of the sources and destinations. It never changes. An edit makes another version. */
export type Catalog = {
  readonly sources: ReadonlyMap<string, Source>
  readonly destinations: ReadonlyMap<string, Destination>
  /** The destinations of each source, whatever their state, in the order of the catalog. */
  readonly destinationsBySource: ReadonlyMap<string, readonly Destination[]>
  /** The first 12 hex characters of the SHA-256 of the catalog's text. */
  readonly version: string
}

/**
 * Joins sources and destinations into a catalog. All sources that destinations name must be among `sources`.
 */
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
 * Returns `next` with the objects of `previous` wherever the definition of a source or a destination is
 * unchanged. So code that keeps a lane or a pool for a destination sees by `===` whether it must make a new
 * one.
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
