import isEqual from 'fast-deep-equal'
import { type AdminAnswer, missing, problem } from '../../admin/problem.ts'
import { holdsDestination, holdsSource, idPrefixOf, isScoped, type TokenScope } from '../../admin/scope.ts'
import type { Labels } from '../../catalog/labels.ts'
import { isRecord, listOf } from '../../catalog/plain-data.ts'
import type { Edit } from '../../catalog-log/judge.ts'
import type { CatalogLog, StoredObject } from '../../catalog-log/log.ts'
import { keyOf } from '../../catalog-log/names.ts'

// What tokens with a scope may see and change of the catalog. Labels decide about rights, so such a token can
// change none. What it may not see is answered like what doesn't exist.

/** Returns true if a scope holds a source or a destination. */
export function holdsObject(scope: TokenScope, { kind, id, definition }: StoredObject): boolean {
  const labels = labelsOf(definition)
  if (kind === 'destination') return holdsDestination(scope, { id, labels })
  return kind === 'source' && holdsSource(scope, { labels })
}

/**
 * Returns the answer to an edit of a destination that a token with this scope may not make. `undefined` if it
 * may.
 */
export function outsideOf(
  scope: TokenScope,
  { objects }: Pick<CatalogLog, 'objects'>,
  edit: Edit,
): AdminAnswer | undefined {
  if (!isScoped(scope)) return undefined
  const { name, base } = edit
  const found = objects.get(keyOf(name))
  const present = found !== undefined && holdsObject(scope, found) ? found : undefined
  if (base === 'none') {
    const prefix = idPrefixOf(scope)
    if (prefix === undefined) return problem('not_allowed', makesNone)
    if (!name.id.startsWith(prefix)) return problem('not_allowed', beginsWith(prefix))
    if (present === undefined && found !== undefined) return problem('outdated', isTaken(name.id))
  } else if (present === undefined) return missing(name.kind, name.id)
  // Nobody with a scope undoes changes, because they concern others too.
  if (edit.op === 'restore') return missing(name.kind, name.id)
  return edit.op === 'remove' ? undefined : faultOf(scope, { objects, present, edit })
}

function faultOf(
  scope: TokenScope,
  {
    objects,
    present,
    edit: { name, given },
  }: {
    readonly objects: CatalogLog['objects']
    readonly present: StoredObject | undefined
    readonly edit: Extract<Edit, { op: 'put' }>
  },
): AdminAnswer | undefined {
  const { label } = scope
  const before = present?.definition ?? { labels: label === undefined ? {} : { [label.key]: label.value } }
  const refuse = (fault: string): AdminAnswer =>
    problem('faulty', `The change has a fault, so nothing was changed:\n${keyOf(name)}: ${fault}`)
  if (!isEqual(given['labels'] ?? {}, before['labels'] ?? {}))
    return refuse(
      `labels: are others than a token with this scope may set; write ${JSON.stringify(before['labels'] ?? {})}`,
    )
  const known = listOf(before['sources'])
  for (const id of listOf(given['sources'])) {
    if (typeof id !== 'string' || known.includes(id)) continue
    const source = objects.get(keyOf({ kind: 'source', id }))
    if (source === undefined || !holdsObject(scope, source))
      return refuse(`sources: names the source ${JSON.stringify(id)}, which this token can not see`)
  }
  return undefined
}

function labelsOf({ labels }: Readonly<Record<string, unknown>>): Labels {
  const texts = Object.entries(isRecord(labels) ? labels : {}).flatMap(([key, value]) =>
    typeof value === 'string' ? [[key, value] as const] : [],
  )
  return Object.fromEntries(texts)
}

const makesNone = 'The scope of the token is a list of destinations, so it can not make others.'

function beginsWith(prefix: string): string {
  return `The ids of destinations that this token makes begin with ${JSON.stringify(prefix)}.`
}

export function isTaken(id: string): string {
  return `The id ${JSON.stringify(id)} is taken: choose another one.`
}
