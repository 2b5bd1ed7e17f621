import type { Catalog, Destination, DestinationState } from '../../catalog/catalog.ts'
import type { DestinationHealth, FailingHook } from '../../health/health-board.ts'
import type { Pause } from '../../notices/pause-record.ts'
import { healthOf } from './destination-health.ts'
import type { KnownHealth } from './health-reading.ts'
import type { Pauses } from './known-pauses.ts'

/**
 * How a destination is, the first of these that is true:
 *
 * - `off`, `paused`: its state in the catalog.
 * - `gone`: a URL of it has answered 410, and gets no more requests.
 * - `auto_paused`: Sluice has paused it, because its URLs have failed for too long.
 * - `failing`: a URL of it fails. See `HookAnswers`.
 * - `paced`: messages wait for their turn, or the endpoint was learned to take less than it could get.
 * - `unknown`: not all workers tell, and those that do know nothing of it.
 * - `healthy`: none of these.
 */
export const conditions = [
  'failing',
  'gone',
  'auto_paused',
  'paced',
  'paused',
  'unknown',
  'healthy',
  'off',
] as const
export type Condition = (typeof conditions)[number]

/** A destination of the catalog, with all that is known of it. Times are epoch milliseconds. */
export type AssessedDestination = {
  readonly destination: Destination
  /** `auto_paused` if Sluice has paused a destination that is `on`. */
  readonly state: DestinationState
  readonly condition: Condition
  /** The ids of its hooks that have answered 410 (Gone). */
  readonly goneHooks: readonly string[]
  /** Its hooks that fail. */
  readonly failing: readonly FailingHook[]
  /** Since when it is in this condition. `undefined`: not known. */
  readonly sinceMs: number | undefined
  /** When a message that has failed is tried next. `undefined`: not known. */
  readonly nextMs: number | undefined
  /** The automatic pause in force. */
  readonly pause: Pause | undefined
  readonly health: DestinationHealth
}

/** Returns all destinations of a catalog, in the order of their ids. */
export function assess(
  { destinations }: Pick<Catalog, 'destinations'>,
  pauses: Pauses,
  known: KnownHealth,
): readonly AssessedDestination[] {
  return [...destinations.values()]
    .toSorted((one, other) => (one.id < other.id ? -1 : 1))
    .map((destination) => assessOne(destination, pauses, known))
}

export function assessOne(destination: Destination, pauses: Pauses, known: KnownHealth): AssessedDestination {
  const { id } = destination
  const goneHooks = pauses.goneHooks(destination)
  const state = stateOf(destination, pauses)
  const told = known.board?.failingOf(id, known.nowMs)
  const failing = destination.hooks.flatMap((hook) => {
    const ofHook = goneHooks.includes(hook.id) ? undefined : told?.hooks.get(hook.id)
    return ofHook === undefined ? [] : [ofHook]
  })
  const health = healthOf(known, id, state)
  const pause = state === 'auto_paused' ? pauses.pauseOf(id) : undefined
  const condition = conditionOf({ state, goneHooks, failing, health })
  return {
    destination,
    state,
    condition,
    goneHooks,
    failing,
    sinceMs: sinceOf({ condition, failing, pause, health }),
    nextMs: told?.nextMs,
    pause,
    health,
  }
}

function stateOf(destination: Destination, pauses: Pauses): DestinationState {
  // The catalog of a worker may already have the automatic pauses, and may be seconds late.
  const isOn = destination.state === 'on' || destination.state === 'auto_paused'
  if (!isOn) return destination.state
  return pauses.has(destination) ? 'auto_paused' : 'on'
}

function conditionOf({
  state,
  goneHooks,
  failing,
  health: { messages, isLowered },
}: Pick<AssessedDestination, 'state' | 'goneHooks' | 'failing' | 'health'>): Condition {
  if (state === 'off' || state === 'paused') return state
  if (goneHooks.length > 0) return 'gone'
  if (state === 'auto_paused') return state
  if (failing.length > 0) return 'failing'
  if (isLowered || (messages ?? 0) > 0) return 'paced'
  return messages === undefined ? 'unknown' : 'healthy'
}

function sinceOf({
  condition,
  failing,
  pause,
  health,
}: Pick<AssessedDestination, 'condition' | 'failing' | 'pause' | 'health'>): number | undefined {
  switch (condition) {
    case 'failing':
      return Math.min(...failing.map(({ sinceMs }) => sinceMs))
    case 'gone':
    case 'auto_paused':
      return pause?.atMs
    case 'paced':
    case 'paused':
      return health.oldestMs
    case 'unknown':
    case 'healthy':
    case 'off':
      return undefined
  }
}

/** Returns true if somebody should look at the destination, because messages of it wait or may be lost. */
export function needsAttention({ condition, health }: AssessedDestination): boolean {
  if (condition === 'paused' || condition === 'paced') return waitingOf(health) > 0
  return conditions.indexOf(condition) < conditions.indexOf('paused')
}

/** How bad a destination is, as far as the order of a list depends on it. */
export type Standing = {
  readonly condition: Condition
  /** How many messages wait, and how many requests have failed in the last minutes. */
  readonly concerned: number
  readonly sinceMs: number | undefined
  readonly id: string
}

export function standingOf(one: AssessedDestination): Standing {
  const { condition, sinceMs, destination } = one
  return { condition, concerned: concernedOf(one), sinceMs, id: destination.id }
}

/**
 * Compares destinations by how bad they are, the worst first: by their condition; then by how many of their
 * messages are concerned; then by how long this lasts; then by their ids.
 */
export function worstFirst(one: AssessedDestination, other: AssessedDestination): number {
  return compareStandings(standingOf(one), standingOf(other))
}

/** Compares as `worstFirst` does. */
export function compareStandings(one: Standing, other: Standing): number {
  return (
    conditions.indexOf(one.condition) - conditions.indexOf(other.condition) ||
    other.concerned - one.concerned ||
    (one.sinceMs ?? Infinity) - (other.sinceMs ?? Infinity) ||
    (one.id === other.id ? 0 : one.id < other.id ? -1 : 1)
  )
}

/** Returns how many messages wait, and how many requests have failed in the last minutes. */
function concernedOf({ failing, health }: AssessedDestination): number {
  return failing.reduce((sum, hook) => sum + failuresOf(hook), waitingOf(health))
}

/** Returns how many messages are known to wait, for their turn or for their next try. */
export function waitingOf({ messages = 0, retrying = 0 }: DestinationHealth): number {
  return messages + retrying
}

/** Returns how many of the last requests to a hook have failed. */
export function failuresOf({ answers }: FailingHook): number {
  return answers.reduce((sum, [what, count]) => (isSuccess(what) ? sum : sum + count), 0)
}

export function isSuccess(what: string): boolean {
  return /^status 2\d\d$/.test(what)
}
