import type { Destination } from '../../catalog/catalog.ts'
import { batchInFile } from '../../catalog/features/batch.ts'
import { isSelected, type LabelSelector } from '../../catalog/labels.ts'
import { healthData, hookData } from './condition-text.ts'
import { type AssessedDestination, worstFirst } from './destination-conditions.ts'
import type { KnownHealth } from './health-reading.ts'

/** The destinations to list. A field that is `undefined` excludes none. */
export type ListQuery = {
  readonly destinationId?: string | undefined
  readonly sourceId?: string | undefined
  /** A state, a condition, or `waiting` for destinations of which messages wait for their turn. */
  readonly state?: string | undefined
  /** A text that the id, the name or the origin of a URL has, in upper or lower case. */
  readonly search?: string | undefined
  readonly label?: LabelSelector | undefined
  /** The worst come first. Otherwise, the order is that of the ids, by their UTF-16 code units. */
  readonly isByWorst?: boolean | undefined
  /** The list has only ids that come after this text. */
  readonly after?: string | undefined
  /** The list has only destinations that come after the first so many. */
  readonly skip?: number | undefined
  readonly limit: number
  readonly isMeant?: (destination: Destination) => boolean
}

/**
 * A part of a list. `next`: the id of the last destination; `undefined` if there are no more. `total`: how
 * many destinations the whole list has.
 */
export type ListPart = {
  readonly listed: readonly AssessedDestination[]
  readonly next: string | undefined
  readonly total: number
}

/**
 * Lists destinations, which are given in the order of their ids. By ids, the parts of a list fit together
 * even if the catalog changes in between. The worst may change their places meanwhile.
 */
export function listDestinations(all: readonly AssessedDestination[], query: ListQuery): ListPart {
  const { after, skip = 0, limit } = query
  const isMeant = filterOf(query)
  const meant = all.filter(isMeant)
  const sorted = query.isByWorst === true ? meant.toSorted(worstFirst) : meant
  const rest = after === undefined ? sorted : sorted.filter(({ destination: { id } }) => id > after)
  const listed = rest.slice(skip, skip + limit)
  const next = rest.length > skip + limit ? listed.at(-1)?.destination.id : undefined
  return { listed, next, total: meant.length }
}

function filterOf({ destinationId, sourceId, state, search, label, isMeant = () => true }: ListQuery) {
  const text = search?.toLowerCase()
  return (one: AssessedDestination): boolean => {
    const { id, sources, labels } = one.destination
    return (
      isMeant(one.destination) &&
      (destinationId === undefined || id === destinationId) &&
      (sourceId === undefined || sources.includes(sourceId)) &&
      (state === undefined || isIn(state, one)) &&
      (label === undefined || isSelected(labels, label)) &&
      (text === undefined || textsOf(one.destination).some((own) => own.toLowerCase().includes(text)))
    )
  }
}

function isIn(state: string, { state: present, condition, health }: AssessedDestination): boolean {
  if (state === 'waiting') return (health.messages ?? 0) > 0
  return state === present || state === condition
}

function textsOf({ id, name, hooks }: Destination): readonly string[] {
  return [id, name, ...hooks.map(({ origin }) => origin)]
}

/**
 * Returns a destination as the HTTP API and `--json` show it. The result has no secrets. Of each hook it has
 * only the origin, because the path of a URL may be secret.
 */
export function destinationData(assessed: AssessedDestination, known: KnownHealth): object {
  const { destination, state } = assessed
  const { id, name, labels, sources, filter, strategy, maxInFlight, rateLimit, hooks } = destination
  return {
    id,
    name,
    state,
    labels: labels ?? {},
    sources,
    filter: filter ?? null,
    isSigned: isSigned(destination),
    strategy,
    maxInFlight,
    rateLimit: rateLimit ?? null,
    batch: batchData(destination),
    hooks: hooks.map((hook) => hookData(assessed, hook)),
    health: healthData(assessed, known),
  }
}

export function isSigned({ sharedSecret, signingKeys }: Destination): boolean {
  return sharedSecret !== undefined || signingKeys !== undefined
}

/** Returns how a destination's messages are sent together. Null: each has a request of its own. */
export function batchData({ batch }: Destination): object | null {
  return batch === undefined ? null : batchInFile(batch)
}
