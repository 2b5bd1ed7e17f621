import isEqual from 'fast-deep-equal'
import type { MessageFilter } from '../message/message-filter.ts'
import type { HookLogin } from './features/hook-login.ts'
import type { HookTls } from './features/hook-tls.ts'
import type { Batch } from './features/batch.ts'
import type { Labels } from './labels.ts'

/** The kind of a source's records: Segment messages, or changes of audiences and computed traits. */
export type SourceKind = 'events' | 'audiences'

export const destinationStates = ['on', 'off', 'paused', 'auto_paused'] as const

/**
 * The state of a destination. `off`: no messages are routed to the destination. `paused`: its deliveries wait
 * in its queue until the destination is `on` again. `auto_paused`: the destination is `on` in the catalog
 * file, but Sluice has paused it automatically, because its URLs have failed for too long
 * (`notices.autoPause`), or are gone (`delivery.stopOnGone`). Its deliveries wait too, or become dead letters
 * (`notices.whileAutoPaused`).
 */
export type DestinationState = (typeof destinationStates)[number]

/**
 * The order of the requests of an attempt. `all`: all hooks get the message at once. `failover`: one hook
 * after the other gets the message, until a hook accepts it.
 */
export type Strategy = 'all' | 'failover'

export type Source = {
  /** The id of the source, which records have in the header `source-id`. */
  readonly id: string
  /** The name for people. If the catalog has no name, this field is the id. */
  readonly name: string
  readonly kind: SourceKind
  readonly enabled: boolean
  /** The write keys, which clients of the gateway send. No two sources have the same write key. */
  readonly writeKeys: readonly string[]
  /**
   * The server keys, which servers send with deletions and audience changes. Several sources may have the
   * same server key. Server keys must never be logged.
   */
  readonly serverKeys: readonly string[]
  /**
   * The most messages per second that one gateway process accepts from this source. `undefined`: no limit.
   */
  readonly maxPerSecond: number | undefined
  readonly labels?: Labels
}

/** A URL of a destination. It meets the rules of `hook-rules.ts`, so undici accepts requests to it. */
export type Hook = {
  /**
   * The id of the hook, which is unique within its destination. If the catalog has no id, the id is made from
   * the URL, so it doesn't depend on the order of the hooks.
   */
  readonly id: string
  /** The normal form of the URL: ASCII, with a path. */
  readonly url: string
  /** The scheme, host and port of the URL, such as `https://example.com:8443`. */
  readonly origin: string
  /** The path and the query. The path is at least `/`. */
  readonly path: string
  /** The names and values of the headers, in the order and the spelling of the catalog. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** How requests log in, beside their headers. It must never be logged. */
  readonly login?: HookLogin
  /** The client certificate, and the authorities that are trusted. It must never be logged. */
  readonly tls?: HookTls
}

/**
 * A destination. While the definition of a destination stays the same, all versions of the catalog share one
 * object for it.
 */
export type Destination = {
  readonly id: string
  /** The name for people. If the catalog has no name, this field is the id. */
  readonly name: string
  readonly state: DestinationState
  /** The ids of the sources to which the destination is connected. The catalog has all of these sources. */
  readonly sources: readonly string[]
  /** The messages of event sources that the destination gets. `undefined`: all. */
  readonly filter: MessageFilter | undefined
  /**
   * The secret with which `X-Signature` is made. `undefined`: requests aren't signed. The secret must never
   * be logged.
   */
  readonly sharedSecret: string | undefined
  /**
   * A second secret. Requests are signed with it in addition to `sharedSecret`, until the receiver uses the
   * second secret. This field is set only with `standardWebhooks` or `sharedSecretEndsAtMs`. The secret must
   * never be logged.
   */
  readonly nextSharedSecret: string | undefined
  /**
   * The time from which requests are signed with `nextSharedSecret` only, in epoch milliseconds. This field
   * is set only with a `nextSharedSecret`.
   */
  readonly sharedSecretEndsAtMs?: number | undefined
  /**
   * True if requests have the headers of Standard Webhooks in addition to `X-Signature`. It is true only with
   * a `sharedSecret`.
   */
  readonly standardWebhooks: boolean
  /**
   * Private keys of Ed25519. Requests are signed with each of them, in addition to the secrets. They must
   * never be logged.
   */
  readonly signingKeys?: readonly string[] | undefined
  readonly strategy: Strategy
  /** The most deliveries to this destination that may be in flight in one process. */
  readonly maxInFlight: number
  /**
   * The most requests that may be in flight to each failing hook. This is the `maxInFlight` of the catalog
   * file, or `undefined` if the file has none.
   */
  readonly maxInFlightSick?: number | undefined
  /**
   * The limits on the attempts of all workers together. `perSecond`: the attempts in a second. `burst`: the
   * attempts that may begin at once after an idle time.
   */
  readonly rateLimit: { readonly perSecond: number; readonly burst: number } | undefined
  /**
   * The deadline of a request, in milliseconds. `undefined`, or longer than `delivery.timeout`: that setting
   * applies.
   */
  readonly timeoutMs?: number | undefined
  /**
   * The time for which all URLs must fail before the destination is paused automatically, in milliseconds. 0:
   * the destination is never paused automatically. `undefined`: the setting `notices.autoPause` applies.
   */
  readonly autoPauseMs?: number | undefined
  readonly labels?: Labels
  /** How messages are sent together. `undefined`: each has a request of its own. */
  readonly batch?: Batch | undefined
  /** The hooks, one to five. */
  readonly hooks: readonly Hook[]
}

/** One version of the sources and destinations. The object never changes. Each edit makes another object. */
export type Catalog = {
  readonly sources: ReadonlyMap<string, Source>
  readonly destinations: ReadonlyMap<string, Destination>
  /**
   * The destinations of each source, by source id and in the order of the catalog. Destinations of every
   * state are included.
   */
  readonly destinationsBySource: ReadonlyMap<string, readonly Destination[]>
  /** The first 12 hex characters of the SHA-256 of the catalog's text. */
  readonly version: string
}

/**
 * Makes a catalog from sources and destinations. `sources` must have every source that a destination names.
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
 * Returns the catalog `next`. If the definition of a source or destination is the same as in `previous`, the
 * result has the object of `previous`. So code that has made a lane or a pool for a destination can find out
 * by `===` whether it needs a new lane or pool. If nothing has changed at all, returns `previous` itself.
 */
export function keepUnchanged(previous: Catalog, next: Catalog): Catalog {
  const kept = createCatalog(
    keep(previous.sources, next.sources),
    keep(previous.destinations, next.destinations),
    next.version,
  )
  const isSame =
    previous.version === next.version &&
    hasSameEntries(previous.sources, kept.sources) &&
    hasSameEntries(previous.destinations, kept.destinations)
  return isSame ? previous : kept
}

function hasSameEntries<T>(before: ReadonlyMap<string, T>, after: ReadonlyMap<string, T>): boolean {
  return before.size === after.size && [...after].every(([id, entry]) => before.get(id) === entry)
}

function keep<T extends { readonly id: string }>(
  before: ReadonlyMap<string, T>,
  after: ReadonlyMap<string, T>,
): readonly T[] {
  return [...after.values()].map((now) => {
    const old = before.get(now.id)
    return old !== undefined && isEqual(old, now) ? old : now
  })
}
