import isEqual from 'fast-deep-equal'
import { holdsDestination, type TokenScope } from '../../admin/scope.ts'
import type { AdminAnswer } from '../../admin/problem.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { isString } from '../../catalog/plain-data.ts'
import type { ChangeAnswer, Once } from '../../catalog-log/desk.ts'
import type { Edit } from '../../catalog-log/judge.ts'
import type { StoredObject } from '../../catalog-log/log.ts'
import { keyOf } from '../../catalog-log/names.ts'
import type { OpenedDesk } from '../operations/catalog-desk.ts'
import { outsideOf } from '../operations/catalog-scope.ts'
import type { AssessedDestination } from '../operations/destination-conditions.ts'
import type { Pauses } from '../operations/known-pauses.ts'
import type { PauseDesk } from '../operations/pause-desk.ts'
import { refusalOf } from '../operations/retry-now.ts'
import { labelsOf } from './applied-edits.ts'

// What is done to many destinations at once. What changes the catalog is one change, which is made as a whole
// or not at all, and can be undone. What orders something is an order for each destination.

export type BulkDeed = 'pause' | 'resume' | 'label' | 'retry-now'

/** The most destinations of one request: of a change of the catalog, and of orders. */
export const mostOfBulk = { change: 5_000, orders: 200 } as const

export type BulkOrder = {
  readonly deed: BulkDeed
  /** The labels that are set, or removed (null). Empty unless the deed is `label`. */
  readonly labels: Readonly<Record<string, string | null>>
  readonly isPreview: boolean
  readonly by: string
  readonly scope: TokenScope
  /** Makes a change of the catalog at most once a day. */
  readonly once?: Once | undefined
}

/** A destination to which nothing is done, and the reason, for people. */
export type Skipped = { readonly destination: string; readonly why: string }

export type BulkDone = {
  readonly ok: true
  /** The ids of the destinations to which something is done. */
  readonly destinations: readonly string[]
  readonly skipped: readonly Skipped[]
  /** The revision of the change of the catalog. `undefined` if there was none. */
  readonly revision: number | undefined
}
export type BulkAnswer =
  | BulkDone
  | { readonly ok: false; readonly kind: 'refused'; readonly change: Extract<ChangeAnswer, { ok: false }> }
  /** The token may not do this to a destination. */
  | { readonly ok: false; readonly kind: 'outside'; readonly answer: AdminAnswer }

/** Pauses, resumes or labels the chosen destinations in the topic of the catalog, by one change. */
export async function changeMany(
  desk: Pick<OpenedDesk, 'look' | 'shown' | 'change'>,
  chosen: readonly AssessedDestination[],
  order: BulkOrder,
): Promise<BulkAnswer> {
  const log = await desk.look()
  const edits: Edit[] = []
  const skipped: Skipped[] = []
  for (const { destination, state } of chosen) {
    const name = { kind: 'destination', id: destination.id } as const
    const object = log.objects.get(keyOf(name))
    // It was removed, or taken out of the scope, since it was chosen.
    if (object === undefined || !holdsDestination(order.scope, { id: name.id, labels: labelsOf(object) }))
      continue
    const fields = fieldsOf(object, state, order)
    if (typeof fields === 'string') {
      skipped.push({ destination: name.id, why: fields })
      continue
    }
    const given = { ...desk.shown(object, { showsUrls: true }), ...fields }
    const edit: Edit = { name, op: 'put', given, base: object.version }
    const outside = outsideOf(order.scope, log, edit)
    if (outside !== undefined) return { ok: false, kind: 'outside', answer: outside }
    edits.push(edit)
  }
  const destinations = edits.map(({ name: { id } }) => id)
  if (edits.length === 0) return { ok: true, destinations, skipped, revision: undefined }
  const { by, isPreview: isDryRun, deed, once } = order
  const change = await desk.change({ edits, by, note: `${deed} of many`, isDryRun, once })
  if (!change.ok) return { ok: false, kind: 'refused', change }
  return { ok: true, destinations, skipped, revision: isDryRun ? undefined : change.revision }
}

/** Returns the fields that change, or why nothing does. */
function fieldsOf(
  object: StoredObject,
  present: AssessedDestination['state'],
  { deed, labels }: BulkOrder,
): Readonly<Record<string, unknown>> | string {
  const { state: given } = object.definition
  const state = isString(given) ? given : 'on'
  switch (deed) {
    case 'pause':
      return state === 'on' ? { state: 'paused' } : `it is ${state} already`
    case 'resume':
      if (state === 'paused') return { state: 'on' }
      return present === 'auto_paused'
        ? 'Sluice has paused it, because its URLs fail: resume it by itself, once they work'
        : `it is ${state}, and not paused`
    case 'label': {
      const before = labelsOf(object)
      const after = Object.fromEntries(
        Object.entries({ ...before, ...labels }).filter(([, value]) => value !== null),
      )
      const isSame = isEqual(before, after)
      return isSame ? 'it has these labels already' : { labels: after }
    }
    case 'retry-now':
      return 'nothing in the catalog changes'
  }
}

/** Orders for each of the chosen destinations that its messages are tried now. */
export async function retryMany(
  desk: Pick<PauseDesk, 'retryNow'>,
  { catalog, pauses }: { readonly catalog: Catalog; readonly pauses: Pauses },
  chosen: readonly AssessedDestination[],
  { isPreview, by }: BulkOrder,
): Promise<BulkDone> {
  const destinations: string[] = []
  const skipped: Skipped[] = []
  for (const { destination } of chosen) {
    const order = { destinationId: destination.id, messageId: undefined, by }
    const refusal = refusalOf(order, catalog, pauses)
    const ordered = refusal ?? (isPreview ? undefined : await desk.retryNow(order))
    if (ordered === undefined || ordered.ok) destinations.push(destination.id)
    else skipped.push({ destination: destination.id, why: ordered.problem })
  }
  return { ok: true, destinations, skipped, revision: undefined }
}
