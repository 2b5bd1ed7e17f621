import { limitOf } from '../admin/limited.ts'
import { type AdminAnswer, done, problem } from '../admin/problem.ts'
import { holdsDestination, isScoped } from '../admin/scope.ts'
import type { AdminCalls, AdminRequest } from '../admin/server.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { keySetOf, publicKeysOf } from '../catalog/features/signing-keys.ts'
import { readSelector } from '../catalog/labels.ts'
import { conditions, type Standing } from './operations/destination-conditions.ts'
import {
  destinationData,
  destinationHealthData,
  listDestinations,
  type ListQuery,
} from './operations/destination-list.ts'
import type { FollowedPicture } from './operations/picture.ts'
import { timeOf } from './operations/pause-desk.ts'
import { statusData, statusOf } from './operations/status-text.ts'
import { asked, type Log } from './replay-calls.ts'

/**
 * Creates the handlers of the calls that say how destinations are. They answer from memory, so they also
 * answer while Kafka is away. `problemOf`: returns what is wrong with the catalog of this process.
 */
export function statusCalls(
  followed: Pick<FollowedPicture, 'current' | 'assessed'>,
  catalog: () => Catalog,
  log: Log,
  problemOf: () => string | undefined = () => undefined,
): Pick<AdminCalls, 'list_destinations' | 'show_status' | 'show_destination_health' | 'show_signing_keys'> {
  return {
    list_destinations: ({ query, token: { scope } }) =>
      asked(log, followed.current(), (picture) => {
        const present = catalog()
        const chosen = queryOf(query)
        if ('problem' in chosen) return problem('bad_request', chosen.problem)
        // A token with a scope doesn't learn which sources there are.
        if (chosen.sourceId !== undefined && !present.sources.has(chosen.sourceId) && !isScoped(scope))
          return problem('bad_request', `The catalog has no source ${JSON.stringify(chosen.sourceId)}.`)
        const part = listDestinations(followed.assessed(present, picture), {
          ...chosen,
          isMeant: (one) => holdsDestination(scope, one),
        })
        return done({
          destinations: part.listed.map((one) => destinationData(one, picture.health)),
          next: chosen.isByWorst === true ? null : (part.next?.id ?? null),
          cursor: cursorOf(part.next, chosen),
          total: part.total,
          asOf: timeOf(picture.asOfMs),
          areAutoPausesKnown: picture.pauses.areKnown,
          catalogVersion: present.version,
        })
      }),
    show_status: () =>
      asked(log, followed.current(), (picture) =>
        done(statusData(statusOf(picture, followed.assessed(catalog(), picture), doubts(problemOf())))),
      ),
    show_signing_keys: async ({ params: { destination = '' } }) => {
      const known = catalog().destinations.get(destination)
      return known === undefined
        ? unknownDestination(destination)
        : done(keySetOf(publicKeysOf(known.signingKeys)))
    },
    show_destination_health: ({ params: { destination = '' } }) =>
      asked(log, followed.current(), (picture): AdminAnswer => {
        // Open pages ask this often, and must not make it look at all destinations.
        const present = catalog().destinations.get(destination)
        if (present === undefined) return unknownDestination(destination)
        return done(destinationHealthData(present, picture))
      }),
  }
}

function doubts(problemOfCatalog: string | undefined): readonly string[] {
  if (problemOfCatalog === undefined) return []
  return [`Whether the process that answers here has the present catalog. ${problemOfCatalog}`]
}

function unknownDestination(destination: string): AdminAnswer {
  return problem(
    'not_found',
    `There is no destination ${JSON.stringify(destination)}: list those that there are.`,
  )
}

function queryOf(query: AdminRequest['query']): ListQuery | { readonly problem: string } {
  const { destination, source, state, search, label, sort, after, cursor } = query
  const selector = label === undefined ? undefined : readSelector(label)
  if (label !== undefined && selector === undefined)
    return { problem: `label: write KEY=VALUE, such as tenant=acme.` }
  const place = cursor === undefined ? {} : placeOf(cursor)
  if (place === undefined) return { problem: 'cursor: pass one from an answer, or none.' }
  return {
    destinationId: destination,
    sourceId: source,
    state,
    search,
    label: selector,
    isByWorst: sort === 'worst',
    after,
    ...place,
    limit: limitOf(query),
  }
}

/** The cursor of the next part: the last id, or how the last of the worst stands. */
function cursorOf(next: Standing | undefined, { isByWorst }: ListQuery): string | null {
  if (next === undefined) return null
  const { condition, concerned, sinceMs = null, id } = next
  const place = isByWorst === true ? { worst: [condition, concerned, sinceMs, id] } : { after: id }
  return Buffer.from(JSON.stringify(place)).toString('base64url')
}

function placeOf(cursor: string): Pick<ListQuery, 'after' | 'afterStanding'> | undefined {
  try {
    const place: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    const { after, worst }: { after?: unknown; worst?: unknown } = Object(place)
    if (typeof after === 'string') return { after }
    const afterStanding = Array.isArray(worst) ? standingIn(worst) : undefined
    return afterStanding && { afterStanding }
  } catch {
    return undefined
  }
}

function standingIn([condition, concerned, sinceMs, id]: readonly unknown[]): Standing | undefined {
  const known = conditions.find((one) => one === condition)
  const isWhole = Number.isFinite(concerned) && (sinceMs === null || Number.isFinite(sinceMs))
  if (known === undefined || !isWhole || typeof id !== 'string') return undefined
  return {
    condition: known,
    concerned: Number(concerned),
    sinceMs: sinceMs === null ? undefined : Number(sinceMs),
    id,
  }
}
