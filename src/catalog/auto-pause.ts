import { hash } from 'node:crypto'
import { formatWait, parseWait } from '../retry/duration.ts'
import { type Catalog, createCatalog, type Destination } from './catalog.ts'
import { differenceBetween, nextCatalog } from './next-catalog.ts'
import type { Breach } from './hook-rules.ts'
import { isString } from './plain-data.ts'

// Rules of automatic pauses: when Sluice may pause a destination whose URLs fail, and how the pauses change
// the catalog.

/** The value of `autoPause` for a destination that is never paused automatically. */
const neverPaused = 'off'
/** The lowest and the highest `autoPause`, in milliseconds. */
export const autoPauseLimits = { min: 1_000, max: 90 * 24 * 3_600_000 } as const
export const autoPauseExpected = `a duration from ${formatWait(autoPauseLimits.min)} to ${formatWait(autoPauseLimits.max)}, such as 120h`
export const autoPausePattern = '^(?:off|[1-9][0-9]{0,8}(?:ms|s|m|h))$'

/**
 * Reads a text that matches `autoPausePattern`, and returns the time in milliseconds. Returns 0 for `off`.
 */
export function readAutoPause(text: string): number {
  return parseWait(text) ?? 0
}

/** Checks an `autoPause` of the catalog against its limits. The catalog's schema checks the format. */
export function autoPauseBreach(given: unknown): Breach | undefined {
  if (!isString(given) || given === neverPaused) return undefined
  const ms = readAutoPause(given)
  if (ms >= autoPauseLimits.min && ms <= autoPauseLimits.max) return undefined
  return { problem: 'is out of range', advice: `write off, or ${autoPauseExpected}` }
}

/** The settings of automatic pauses from the configuration. */
export type AutoPauseTerms = {
  /**
   * The time for which all URLs of a destination must fail before Sluice pauses the destination, in
   * milliseconds. 0: no destination is paused automatically.
   */
  readonly autoPauseMs: number
  /** The id of the source of notices. The destinations of this source are never paused automatically. */
  readonly noticesSource: string
  /** True if a hook that answers 410 (Gone) gets no more requests. */
  readonly stopsOnGone: boolean
}

type PauseTerms = Pick<AutoPauseTerms, 'autoPauseMs' | 'noticesSource'>

/**
 * Returns the time for which all URLs of a destination must fail before Sluice pauses the destination, in
 * milliseconds. Returns 0 if the destination is never paused automatically. A destination that gets notices
 * is never paused automatically, because the notices report automatic pauses.
 */
export function autoPauseMsOf(
  { autoPauseMs, sources }: Pick<Destination, 'autoPauseMs' | 'sources'>,
  terms: PauseTerms,
): number {
  return sources.includes(terms.noticesSource) ? 0 : (autoPauseMs ?? terms.autoPauseMs)
}

/**
 * Returns true if workers don't send to a destination because of this pause. Workers ignore a pause if the
 * URLs have changed since, or if automatic pauses are off for the destination. `pause.urls` is the digest of
 * the URLs when the pause began. A pause with the `cause` `gone` only tells that all hooks are gone, which
 * `restrained` knows by itself.
 */
export function isPauseInForce(
  destination: Pick<Destination, 'autoPauseMs' | 'sources' | 'hooks'>,
  pause: { readonly urls: string; readonly cause?: string | undefined },
  terms: PauseTerms,
): boolean {
  if (pause.cause === 'gone') return false
  return pause.urls === urlsDigestOf(destination) && autoPauseMsOf(destination, terms) > 0
}

/** Returns a text that changes when a URL of the destination changes. The text doesn't reveal the URLs. */
export function urlsDigestOf({ hooks }: Pick<Destination, 'hooks'>): string {
  const urls = hooks.map(({ url }) => url).toSorted()
  return hash('sha256', JSON.stringify(urls)).slice(0, 16)
}

/**
 * Returns true if the hooks of a destination may count as gone after a 410. Those of a destination that is
 * never paused may not.
 */
export function mayBeGone(
  { autoPauseMs, sources }: Pick<Destination, 'autoPauseMs' | 'sources'>,
  { stopsOnGone, noticesSource }: AutoPauseTerms,
): boolean {
  return stopsOnGone && autoPauseMs !== 0 && !sources.includes(noticesSource)
}

/**
 * What Sluice itself does to a destination that is `on`: pauses it, or leaves out the hooks that are gone.
 */
export type Restraint = { readonly isPaused: boolean; readonly goneHooks: readonly string[] }

/**
 * Returns what is left of a destination that is `on`. If it is paused, or all of its hooks are gone, its
 * state becomes `auto_paused`. Otherwise it loses the hooks that are gone. Returns the destination itself if
 * nothing changes.
 */
export function restrained(destination: Destination, { isPaused, goneHooks }: Restraint): Destination {
  if (destination.state !== 'on') return destination
  const hooks = destination.hooks.filter(({ id }) => !goneHooks.includes(id))
  if (isPaused || hooks.length === 0) return { ...destination, state: 'auto_paused' }
  return hooks.length === destination.hooks.length ? destination : { ...destination, hooks }
}

/** A catalog as it was read, and the same with the changes of `withChanged`. */
export type ChangedCatalog = { readonly read: Catalog; readonly catalog: Catalog }

/**
 * Does the same as `withChanged`. If `read` was made from the earlier catalog, changes only those
 * destinations in which they differ. The others must not change otherwise.
 */
export function withChangedSince(
  earlier: ChangedCatalog | undefined,
  read: Catalog,
  change: (destination: Destination) => Destination,
): Catalog {
  const difference = earlier && differenceBetween(earlier.read, read)
  if (earlier === undefined || difference === undefined) return withChanged(read, change)
  const changed = (id: string): Destination | undefined => {
    const destination = read.destinations.get(id)
    return destination && change(destination)
  }
  const isAsRead = (id: string): boolean => {
    const destination = read.destinations.get(id)
    return destination === undefined || change(destination) === destination
  }
  if (earlier.catalog === earlier.read && holdsForAll(difference.destinations, isAsRead)) return read
  const destinations = entriesOf(difference.destinations, changed)
  const sources = entriesOf(difference.sources, (id) => read.sources.get(id))
  return nextCatalog(earlier.catalog, { sources, destinations }, read.version)
}

function holdsForAll(ids: ReadonlySet<string>, holds: (id: string) => boolean): boolean {
  for (const id of ids) if (!holds(id)) return false
  return true
}

function entriesOf<T>(ids: ReadonlySet<string>, entryOf: (id: string) => T): ReadonlyMap<string, T> {
  const entries = new Map<string, T>()
  for (const id of ids) entries.set(id, entryOf(id))
  return entries
}

/**
 * Returns a copy of `catalog` whose destinations are those that `change` returns. Returns `catalog` itself if
 * no destination changes.
 */
function withChanged(catalog: Catalog, change: (destination: Destination) => Destination): Catalog {
  const destinations = [...catalog.destinations.values()].map(change)
  if (destinations.every((destination) => destination === catalog.destinations.get(destination.id)))
    return catalog
  return createCatalog([...catalog.sources.values()], destinations, catalog.version)
}
