import { createHash } from 'node:crypto'
import { formatWait, parseWait } from '../retry/duration.ts'
import { type Catalog, createCatalog, type Destination } from './catalog.ts'
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
}

/**
 * Returns the time for which all URLs of a destination must fail before Sluice pauses the destination, in
 * milliseconds. Returns 0 if the destination is never paused automatically. A destination that gets notices
 * is never paused automatically, because the notices report automatic pauses.
 */
export function autoPauseMsOf(
  { autoPauseMs, sources }: Pick<Destination, 'autoPauseMs' | 'sources'>,
  terms: AutoPauseTerms,
): number {
  return sources.includes(terms.noticesSource) ? 0 : (autoPauseMs ?? terms.autoPauseMs)
}

/**
 * Returns true if workers don't send to a destination because of this pause. Workers ignore a pause if the
 * URLs have changed since, or if automatic pauses are off for the destination. `pause.urls` is the digest of
 * the URLs when the pause began.
 */
export function isPauseInForce(
  destination: Pick<Destination, 'autoPauseMs' | 'sources' | 'hooks'>,
  pause: { readonly urls: string },
  terms: AutoPauseTerms,
): boolean {
  return pause.urls === urlsDigestOf(destination) && autoPauseMsOf(destination, terms) > 0
}

/** Returns a text that changes when a URL of the destination changes. The text doesn't reveal the URLs. */
export function urlsDigestOf({ hooks }: Pick<Destination, 'hooks'>): string {
  const urls = hooks.map(({ url }) => url).toSorted()
  return createHash('sha256').update(JSON.stringify(urls)).digest('hex').slice(0, 16)
}

/**
 * Returns a copy of `catalog` in which some destinations have the state `auto_paused`: those that are `on` in
 * `catalog`, if `isPaused` returns true for them. Other destinations keep their states. Returns `catalog`
 * itself if no state changes.
 */
export function withAutoPaused(catalog: Catalog, isPaused: (destination: Destination) => boolean): Catalog {
  const destinations = [...catalog.destinations.values()].map((destination): Destination =>
    destination.state === 'on' && isPaused(destination)
      ? { ...destination, state: 'auto_paused' }
      : destination,
  )
  if (destinations.every((destination) => destination === catalog.destinations.get(destination.id)))
    return catalog
  return createCatalog([...catalog.sources.values()], destinations, catalog.version)
}
