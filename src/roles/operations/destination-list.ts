import { isPauseInForce, mayBeGone } from '../../catalog/auto-pause.ts'
import type { Catalog, Destination, DestinationState } from '../../catalog/catalog.ts'
import type { Config } from '../../config/schema.ts'
import { healthData } from './destination-health.ts'
import type { KnownHealth } from './health-reading.ts'
import type { DeskAnswer } from './replay-desk.ts'
import { hookContentsOf } from '../../delivery/hook-content.ts'
import type { GoneByDestination, PausedDestination } from './pause-desk.ts'
import { autoPauseTermsOf } from '../start/settings.ts'

/** The destinations to list. A field that is `undefined` excludes none. */
export type ListQuery = {
  readonly destinationId?: string | undefined
  readonly sourceId?: string | undefined
  readonly state?: string | undefined
  /** The list has only ids that come after this text, in the order of their UTF-16 code units. */
  readonly after?: string | undefined
  readonly limit: number
  readonly isMeant?: (destination: Destination) => boolean
}

/** A destination of the catalog. `state` is `auto_paused` if Sluice has paused a destination that is `on`. */
export type ListedDestination = {
  readonly destination: Destination
  readonly state: DestinationState
  /** The ids of its hooks that have answered 410 (Gone). */
  readonly goneHooks: readonly string[]
}

/** A part of a list. `next`: the value of `after` for the next part; `undefined` if there are no more. */
export type ListPart = { readonly listed: readonly ListedDestination[]; readonly next: string | undefined }

/** Tells which destinations Sluice has paused. */
export type Pauses = {
  /** False if this can't be found out, because there is no topic of notices, or no right to read it. */
  readonly areKnown: boolean
  has(destination: Destination): boolean
  /** Returns the ids of the destination's hooks that have answered 410 (Gone), and so get no requests. */
  goneHooks(destination: Destination): readonly string[]
}

/** Returns the pauses and gone hooks that workers honour, from what the desk knows. */
export function pausesOf(
  paused: DeskAnswer<readonly PausedDestination[]>,
  gone: DeskAnswer<GoneByDestination>,
  config: Config,
): Pauses {
  if (!paused.ok || !gone.ok) return { areKnown: false, has: () => false, goneHooks: () => [] }
  const terms = autoPauseTermsOf(config)
  const pauses = new Map(paused.value.map(({ destinationId, pause }) => [destinationId, pause]))
  function goneHooks(destination: Destination): readonly string[] {
    const records = gone.ok && mayBeGone(destination, terms) ? gone.value.get(destination.id) : undefined
    if (records === undefined) return []
    const contents = hookContentsOf(destination)
    return [...records].flatMap(([id, { content }]) => (contents.get(id) === content ? [id] : []))
  }
  return {
    areKnown: true,
    has(destination) {
      const pause = pauses.get(destination.id)
      const isPaused = pause !== undefined && isPauseInForce(destination, pause, terms)
      return isPaused || goneHooks(destination).length === destination.hooks.length
    },
    goneHooks,
  }
}

/**
 * Lists destinations in the order of their ids. So the parts of a list fit together, even if the catalog
 * changes in between.
 */
export function listDestinations(
  { destinations }: Catalog,
  pauses: Pauses,
  { destinationId, sourceId, state, after, limit, isMeant = () => true }: ListQuery,
): ListPart {
  const meant = [...destinations.values()].filter(
    (destination) =>
      (destinationId === undefined || destination.id === destinationId) &&
      (sourceId === undefined || destination.sources.includes(sourceId)) &&
      (after === undefined || destination.id > after) &&
      isMeant(destination),
  )
  const listed: ListedDestination[] = []
  for (const destination of meant.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    const present = stateOf(destination, pauses)
    if (state !== undefined && present !== state) continue
    if (listed.length === limit) return { listed, next: listed.at(-1)?.destination.id }
    listed.push({ destination, state: present, goneHooks: pauses.goneHooks(destination) })
  }
  return { listed, next: undefined }
}

function stateOf(destination: Destination, pauses: Pauses): DestinationState {
  // The catalog of a worker may already have the automatic pauses, and may be seconds late.
  const isOn = destination.state === 'on' || destination.state === 'auto_paused'
  if (!isOn) return destination.state
  return pauses.has(destination) ? 'auto_paused' : 'on'
}

/**
 * Returns a destination as the HTTP API and `--json` show it. The result has no secrets. Of each hook it has
 * only the origin, because the path of a URL may be secret.
 */
export function destinationData(
  { destination, state, goneHooks }: ListedDestination,
  health: KnownHealth,
): object {
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
    hooks: hooks.map(({ id: hookId, origin }) => ({
      id: hookId,
      origin,
      isGone: goneHooks.includes(hookId),
    })),
    health: healthData(health, id, state),
  }
}
