import type { Destination, Source } from '../catalog/catalog.ts'
import { isSelected, type LabelSelector, readSelector } from '../catalog/labels.ts'
import { isRecord } from '../catalog/plain-data.ts'

/**
 * What a token may see and change. A destination must meet each part that is given. Without a part, this is
 * the whole installation.
 */
export type TokenScope = {
  readonly label?: LabelSelector
  /** The ids of destinations. */
  readonly destinations?: ReadonlySet<string>
}

export const everything: TokenScope = {}

/** A scope in an answer, in a body, and in the topic of the catalog. */
export type ScopeData = 'all' | { readonly label?: string; readonly destinations?: readonly string[] }

export function isScoped({ label, destinations }: TokenScope): boolean {
  return label !== undefined || destinations !== undefined
}

type Labelled = Pick<Destination, 'id' | 'labels'>

export function holdsDestination({ label, destinations }: TokenScope, { id, labels }: Labelled): boolean {
  if (destinations?.has(id) === false) return false
  return label === undefined || isSelected(labels, label)
}

/**
 * Returns true if the catalog has a destination that the scope holds. Without a scope, everything is seen,
 * also what is about no destination (`undefined`), or about one that was removed.
 */
export function sees(
  scope: TokenScope,
  { destinations }: { readonly destinations: ReadonlyMap<string, Labelled> },
  destinationId: string | undefined,
): boolean {
  if (!isScoped(scope)) return true
  const destination = destinationId === undefined ? undefined : destinations.get(destinationId)
  return destination !== undefined && holdsDestination(scope, destination)
}

/** A list names destinations only, so it holds no source. */
export function holdsSource(
  { label, destinations }: TokenScope,
  { labels }: Pick<Source, 'labels'>,
): boolean {
  if (destinations !== undefined) return false
  return label === undefined || isSelected(labels, label)
}

/** Returns true if the scope `own` holds all that `other` holds, whatever labels change later. */
export function covers(own: TokenScope, other: TokenScope): boolean {
  const { label, destinations } = own
  if (label !== undefined && (other.label?.key !== label.key || other.label.value !== label.value))
    return false
  if (destinations === undefined) return true
  return other.destinations !== undefined && [...other.destinations].every((id) => destinations.has(id))
}

/**
 * Returns a scope that somebody with the scope `own` may give: what it leaves open is as in his own. Returns
 * `undefined` if it asks for more.
 */
export function narrowed(own: TokenScope, asked: TokenScope): TokenScope | undefined {
  const scope = { ...own, ...asked }
  return covers(own, scope) ? scope : undefined
}

/**
 * Returns what the ids of destinations begin with that a token may make. Ids are shared by all, so a token
 * that could choose any id would learn which ids others have. `undefined`: it may make none.
 */
export function idPrefixOf({ label, destinations }: TokenScope): string | undefined {
  if (destinations !== undefined) return undefined
  return label === undefined ? '' : `${label.value}.`
}

/** Names a scope for people, and for whoever shares a limit: `all`, or its parts. */
export function scopeText({ label, destinations }: TokenScope): string {
  const parts = [
    ...(label === undefined ? [] : [`${label.key}=${label.value}`]),
    ...(destinations === undefined ? [] : [[...destinations].join(',')]),
  ]
  return parts.length === 0 ? 'all' : parts.join(' and ')
}

export function scopeData(scope: TokenScope): ScopeData {
  if (!isScoped(scope)) return 'all'
  const { label, destinations } = scope
  return {
    ...(label !== undefined && { label: `${label.key}=${label.value}` }),
    ...(destinations !== undefined && { destinations: [...destinations] }),
  }
}

/**
 * Reads a scope. Returns `undefined` if this version doesn't know all of it: a part that is overlooked would
 * give more than was meant.
 */
export function readScope(value: unknown): TokenScope | undefined {
  if (value === 'all') return everything
  if (!isRecord(value)) return undefined
  const { label, destinations, ...others } = value
  if (Object.keys(others).length > 0 || (label === undefined && destinations === undefined)) return undefined
  const selector = typeof label === 'string' ? readSelector(label) : undefined
  if (label !== undefined && selector === undefined) return undefined
  const ids = Array.isArray(destinations) ? destinations.filter((id) => typeof id === 'string') : []
  const isList = Array.isArray(destinations) && ids.length === destinations.length
  if (destinations !== undefined && !isList) return undefined
  return {
    ...(selector !== undefined && { label: selector }),
    ...(destinations !== undefined && { destinations: new Set(ids) }),
  }
}
