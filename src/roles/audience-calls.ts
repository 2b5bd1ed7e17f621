import { done } from '../admin/problem.ts'
import { holdsDestination, holdsSource, type TokenScope } from '../admin/scope.ts'
import type { AdminCalls } from '../admin/server.ts'
import type { Catalog, Destination, Source } from '../catalog/catalog.ts'
import type { AudienceHealth } from '../health/audience-board.ts'
import { timeOrNull } from './operations/condition-text.ts'
import { timeOf } from './operations/pause-desk.ts'
import type { FollowedPicture } from './operations/picture.ts'
import { asked, type Log } from './replay-calls.ts'

/** The most destinations of a space in an answer. */
const mostDestinations = 200
/** The states of a destination, the worst first. */
const states = ['needs_backfill', 'first_sync', 'waiting', 'unknown', 'complete'] as const

type DestinationData = {
  readonly destination: string
  readonly name: string
  readonly state: (typeof states)[number]
  readonly left: number
}

/** Creates the handler of the call that says what audiences have. It answers from memory. */
export function audienceCalls(
  followed: Pick<FollowedPicture, 'current'>,
  catalog: () => Catalog,
  log: Log,
): Pick<AdminCalls, 'list_audiences'> {
  return {
    list_audiences: ({ token: { scope } }) =>
      asked(log, followed.current(), ({ asOfMs, health: { board, nowMs } }) => {
        const present = catalog()
        const isComplete = board?.asOfMs(nowMs) !== undefined
        const told = board?.audiences(nowMs)
        const units = Math.max(0, ...(board?.processes(nowMs) ?? []).map(({ of }) => of))
        const spaces = [...present.sources.values()].filter(
          (source) => source.kind === 'audiences' && holdsSource(scope, source),
        )
        return done({
          asOf: timeOf(asOfMs),
          isComplete,
          spaces: spaces.map((source) => spaceData(source, { present, scope, told, isComplete, units })),
          untold: told?.untold ?? 0,
        })
      }),
  }
}

type Known = {
  readonly present: Catalog
  readonly scope: TokenScope
  readonly told: AudienceHealth | undefined
  readonly isComplete: boolean
  /** How many units the installation has. */
  readonly units: number
}

function spaceData({ id, name, enabled }: Source, known: Known): object {
  const { present, scope, told, units } = known
  const counted = told?.spaces.get(id)
  const values = [...(counted?.values ?? [])].toSorted(([, one], [, other]) => other - one)
  const otherValues = counted?.otherValues ?? 0
  const isCounted = counted !== undefined && units > 0 && counted.units >= units
  const connected = [...present.destinations.values()].filter(
    (one) => one.sources.includes(id) && holdsDestination(scope, one),
  )
  const destinations = connected
    .map((one) => destinationData(one, id, known))
    .toSorted((one, other) => states.indexOf(one.state) - states.indexOf(other.state))
  return {
    id,
    name,
    isOn: enabled,
    values: isCounted ? values.reduce((sum, [, count]) => sum + count, otherValues) : null,
    countedAt: timeOrNull(counted?.atMs),
    audiences: values.map(([key, count]) => ({ key, values: count })),
    otherValues,
    destinations: destinations.slice(0, mostDestinations),
    connected: connected.length,
  }
}

function destinationData(
  { id, name }: Destination,
  spaceId: string,
  { told, isComplete }: Known,
): DestinationData {
  const isMeant = (one: { readonly destination: string; readonly space: string }): boolean =>
    one.destination === id && one.space === spaceId
  const sync = told?.firstSyncs.find(isMeant)
  const about = { destination: id, name, left: sync?.left ?? 0 }
  if (sync !== undefined) return { ...about, state: sync.isWaiting ? 'waiting' : 'first_sync' }
  if (told?.behind.some(isMeant) === true) return { ...about, state: 'needs_backfill' }
  return { ...about, state: isComplete ? 'complete' : 'unknown' }
}
