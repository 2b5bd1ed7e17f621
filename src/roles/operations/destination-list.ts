import type { Destination } from '../../catalog/catalog.ts'
import { batchInFile } from '../../catalog/features/batch.ts'
import { isSelected, type LabelSelector } from '../../catalog/labels.ts'
import { healthData, hookData } from './condition-text.ts'
import {
  type AssessedDestination,
  assessOne,
  compareStandings,
  type Standing,
  standingOf,
  waitingOf,
} from './destination-conditions.ts'
import type { KnownHealth } from './health-reading.ts'
import { timeOf } from './pause-desk.ts'
import type { Picture } from './picture.ts'

/** The destinations to list. A field that is `undefined` excludes none. */
export type ListQuery = {
  readonly destinationId?: string | undefined
  readonly sourceId?: string | undefined
  /** A state, a condition, or `waiting` for destinations of which messages wait. */
  readonly state?: string | undefined
  /** A text that the id, the name or the origin of a URL has, in upper or lower case. */
  readonly search?: string | undefined
  readonly label?: LabelSelector | undefined
  /** The worst come first. Otherwise, the order is that of the ids, by their UTF-16 code units. */
  readonly isByWorst?: boolean | undefined
  /** The list has only ids that come after this text. */
  readonly after?: string | undefined
  /** With `isByWorst`: the list has only destinations that are less bad than this. */
  readonly afterStanding?: Standing | undefined
  readonly limit: number
  readonly isMeant?: (destination: Destination) => boolean
}

/**
 * A part of a list. `next`: how the last destination stands; `undefined` if there are no more. `total`: how
 * many destinations the whole list has.
 */
export type ListPart = {
  readonly listed: readonly AssessedDestination[]
  readonly next: Standing | undefined
  readonly total: number
}

/**
 * Lists destinations, which are given in the order of their ids. The parts of a list fit together: a
 * destination comes once, whatever becomes of others in between. But by the worst, one that itself gets worse
 * meanwhile may be left out, and one that gets better may come twice.
 */
export function listDestinations(all: readonly AssessedDestination[], query: ListQuery): ListPart {
  const { after, afterStanding, isByWorst = false, limit } = query
  const isMeant = filterOf(query)
  const meant = all.filter(isMeant).map((one) => ({ one, standing: standingOf(one) }))
  if (isByWorst) meant.sort((a, b) => compareStandings(a.standing, b.standing))
  const rest = meant.filter(
    ({ standing }) =>
      (after === undefined || standing.id > after) &&
      (!isByWorst || afterStanding === undefined || compareStandings(standing, afterStanding) > 0),
  )
  const listed = rest.slice(0, limit)
  const next = rest.length > limit ? listed.at(-1)?.standing : undefined
  return { listed: listed.map(({ one }) => one), next, total: meant.length }
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
  if (state === 'waiting') return waitingOf(health) > 0
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

/** Returns how a destination is, with its URLs, as the HTTP API and live views show it. */
export function destinationHealthData(destination: Destination, { asOfMs, pauses, health }: Picture) {
  const one = assessOne(destination, pauses, health)
  const { id, name, timeoutMs, hooks } = destination
  return {
    destination: id,
    name,
    state: one.state,
    timeoutMs: timeoutMs ?? null,
    batch: batchData(destination),
    isSigned: isSigned(destination),
    asOf: timeOf(asOfMs),
    health: healthData(one, health),
    hooks: hooks.map((hook) => hookData(one, hook)),
  }
}

function isSigned({ sharedSecret, signingKeys }: Destination): boolean {
  return sharedSecret !== undefined || signingKeys !== undefined
}

/** Returns how a destination's messages are sent together. Null: each has a request of its own. */
function batchData({ batch }: Destination): object | null {
  return batch === undefined ? null : batchInFile(batch)
}
