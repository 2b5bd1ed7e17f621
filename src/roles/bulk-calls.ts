import { AtOnce } from '../admin/at-once.ts'
import { type AdminAnswer, done, noToken, problem } from '../admin/problem.ts'
import { holdsDestination } from '../admin/scope.ts'
import type { AdminCalls, AdminRequest } from '../admin/server.ts'
import { mayDo, shareOf } from '../admin/tokens.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { readSelector } from '../catalog/labels.ts'
import type { Config } from '../config/schema.ts'
import {
  type BulkAnswer,
  type BulkDeed,
  type BulkOrder,
  changeMany,
  mostOfBulk,
  retryMany,
} from './bulk/bulk.ts'
import { type AtDesk, refusedChange } from './catalog-calls.ts'
import type { AssessedDestination } from './operations/destination-conditions.ts'
import { listDestinations } from './operations/destination-list.ts'
import { changedOnce, onceOf } from './once.ts'
import { pausesOf } from './operations/known-pauses.ts'
import type { OpenedDesk } from './operations/catalog-desk.ts'
import type { PauseDesk } from './operations/pause-desk.ts'
import type { FollowedPicture } from './operations/picture.ts'
import { asked, type Log } from './replay-calls.ts'

/** How many bulk calls may run at the same time. */
const bulksAtOnce = { most: 4, mostOfToken: 1, what: 'calls for many destinations' }

export type BulkCallsOptions = {
  readonly followed: Pick<FollowedPicture, 'current' | 'assessed'>
  readonly desk: PauseDesk
  readonly atDesk: AtDesk
  readonly catalog: () => Catalog
  readonly config: Config
  readonly log: Log
}

/** Creates the handler of the call that does the same to many destinations. */
export function bulkCalls(options: BulkCallsOptions): Pick<AdminCalls, 'change_destinations'> {
  const { followed, desk, atDesk, catalog, config, log } = options
  const atOnce = new AtOnce(bulksAtOnce)

  async function carriedOut(request: AdminRequest): Promise<AdminAnswer> {
    const picture = await followed.current()
    const chosen = chosenOf(request, followed.assessed(catalog(), picture))
    if ('problem' in chosen) return problem('bad_request', chosen.problem)
    const order = orderOf(request)
    if (order.deed === 'retry-now') {
      const pauses = pausesOf(await desk.paused(), await desk.gone(), config)
      const made = await retryMany(desk, { catalog: catalog(), pauses }, chosen.listed, order)
      return answerOf(order, chosen, made)
    }
    // A preview changes nothing, so it takes no key.
    const once = order.isPreview ? undefined : onceOf('change_destinations', request)
    const changed = (opened: OpenedDesk): Promise<AdminAnswer> =>
      changedOnce(opened, once, {
        make: () => changeMany(opened, chosen.listed, { ...order, once }),
        answer: (made) => answerOf(order, chosen, made),
        again({ revision, objects }) {
          const destinations = objects.map(({ name: { id } }) => id)
          const made: BulkAnswer = { ok: true, destinations, skipped: [], revision }
          return answerOf(order, { listed: destinations, unknown: [] }, made)
        },
      })
    return atDesk(request, changed, { deed: order.deed })
  }

  return {
    async change_destinations(request): Promise<AdminAnswer> {
      const { token, isInForce } = request
      const { deed, isPreview, labels } = orderOf(request)
      if (deed !== 'retry-now' && !mayDo(token, 'admin')) return problem('not_allowed', needsAdmin)
      if ((deed === 'label') !== Object.keys(labels).length > 0) return problem('bad_request', labelsOfLabel)
      return atOnce.run(shareOf(token), async () => {
        if (!isInForce()) return noToken
        if (!isPreview) log.info({ deed, by: token.name }, 'the same is to be done to many destinations')
        return asked(log, carriedOut(request), (answer) => answer, { withinMs: Infinity })
      })
    },
  }
}

const needsAdmin =
  'pause, resume and label change the catalog, which needs the right admin: take another token.'
const labelsOfLabel = 'labels: give it with "do": "label", and only then.'

type Chosen = { readonly listed: readonly AssessedDestination[]; readonly unknown: readonly string[] }

/** Returns the destinations that a body chooses, as far as the token sees them, in the order of their ids. */
function chosenOf(
  { body, token: { scope } }: AdminRequest,
  all: readonly AssessedDestination[],
): Chosen | { readonly problem: string } {
  const { selection, do: deed }: { selection?: unknown; do?: unknown } = Object(body)
  const { label, state, search, source, destinations }: Selection = Object(selection)
  const selector = label === undefined ? undefined : readSelector(label)
  if (label !== undefined && selector === undefined)
    return { problem: 'selection.label: write KEY=VALUE, such as tenant=acme.' }
  const most = deed === 'retry-now' ? mostOfBulk.orders : mostOfBulk.change
  const ids = destinations === undefined ? undefined : new Set(destinations)
  const { listed, total } = listDestinations(all, {
    label: selector,
    state,
    search,
    sourceId: source,
    limit: most,
    isMeant: (one) => holdsDestination(scope, one) && (ids?.has(one.id) ?? true),
  })
  if (total > most)
    return { problem: `This selects ${total} destinations, and may select ${most}: select fewer.` }
  const seen = new Set(all.flatMap(({ destination: one }) => (holdsDestination(scope, one) ? [one.id] : [])))
  return { listed, unknown: (destinations ?? []).filter((id) => !seen.has(id)) }
}

type Selection = {
  readonly label?: string
  readonly state?: string
  readonly search?: string
  readonly source?: string
  readonly destinations?: readonly string[]
}

/** Returns the order of a body that has passed schema validation. */
function orderOf({ body, token: { name, scope } }: AdminRequest): BulkOrder {
  const given: { do: BulkDeed; labels?: BulkOrder['labels']; dryRun?: boolean } = Object(body)
  const { do: deed, labels = {}, dryRun: isPreview = false } = given
  return { deed, labels, isPreview, by: name, scope }
}

function answerOf(
  { deed, isPreview }: BulkOrder,
  { listed, unknown }: { readonly listed: readonly unknown[]; readonly unknown: readonly string[] },
  made: BulkAnswer,
): AdminAnswer {
  if (!made.ok) return made.kind === 'outside' ? made.answer : refusedChange(made.change)
  const { destinations, skipped, revision = null } = made
  return done({ do: deed, isPreview, selected: listed.length, destinations, skipped, unknown, revision })
}
