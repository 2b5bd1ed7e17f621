import { isString, listOf, recordOf } from '../catalog/plain-data.ts'
import { conditionOfFql } from '../conditions/fql.ts'
import { LeftOut, type Note } from './note.ts'
import { type Item, nameOf, textOf } from './workspace.ts'

/** What the destination filters of Segment are in the catalog. */
export type Filtered = {
  readonly filter: { readonly condition?: string; readonly sample?: { readonly percent: number } }
  /** Fields for `allow` and `block` of a mapping. */
  readonly fields: { readonly allow?: readonly string[]; readonly block?: readonly string[] }
  readonly notes: readonly Note[]
}

/** The fields of Segment's messages at the top level. */
const messageFields = [
  'type',
  'event',
  'name',
  'category',
  'userId',
  'anonymousId',
  'groupId',
  'previousId',
  'messageId',
  'timestamp',
  'originalTimestamp',
  'sentAt',
  'receivedAt',
  'channel',
  'version',
  'properties',
  'traits',
  'context',
  'integrations',
] as const

/**
 * Translates the filters of a destination that are on. Throws `LeftOut` if one can't be translated, because
 * without it the destination would get what it must not get.
 */
export function filtersOf(filters: readonly Item[], about: string): Filtered {
  const parts: Parts = { conditions: [], block: [], notes: [], about }
  for (const filter of filters) {
    if (filter['enabled'] === false) continue
    for (const action of listOf(filter['actions']).map(recordOf)) addAction(parts, filter, action)
  }
  const { sample, allow, block, notes } = parts
  const condition = joined(parts.conditions)
  return {
    filter: {
      ...(condition !== undefined && { condition }),
      ...(sample !== undefined && { sample: { percent: sample } }),
    },
    fields: { ...(allow && { allow }), ...(block.length > 0 && { block }) },
    notes,
  }
}

/** Returns the condition that holds if all of these do. */
function joined(conditions: readonly string[]): string | undefined {
  return conditions.length < 2 ? conditions[0] : conditions.map((one) => `(${one})`).join(' && ')
}

type Parts = {
  readonly conditions: string[]
  readonly block: string[]
  readonly notes: Note[]
  readonly about: string
  sample?: number
  allow?: readonly string[]
}

const rulesWay = 'write filter and mappings of the destination by hand (docs/conditions.md, docs/mappings.md)'

function addAction(parts: Parts, filter: Item, action: Item): void {
  const title = textOf(filter, 'title') || nameOf(filter)
  const fql = textOf(filter, 'if')
  const isForAll = fql === '' || fql.toLowerCase() === 'all'
  const kind = textOf(action, 'type').toUpperCase()
  if (kind === 'DROP' && isForAll)
    throw new LeftOut(`its filter ${quoted(title)} drops all messages`, 'leave it out')
  if (kind === 'DROP') {
    parts.conditions.push(translated(`not (${fql})`, `its filter ${quoted(title)}`))
    return
  }
  if (!isForAll)
    throw new LeftOut(
      `its filter ${quoted(title)} changes or samples only some messages, which Sluice has no field for`,
      rulesWay,
    )
  if (kind === 'SAMPLE') addSample(parts, title, action)
  else if (kind === 'DROP_PROPERTIES') parts.block.push(...pathsOf(action))
  else if (kind === 'ALLOW_PROPERTIES') addAllowed(parts, title, action)
  else throw new LeftOut(`its filter ${quoted(title)} does ${quoted(kind)}, which is not known`, rulesWay)
}

function addSample(parts: Parts, title: string, action: Item): void {
  const share = action['percent']
  if (typeof share !== 'number' || !(share > 0 && share <= 1) || parts.sample !== undefined)
    throw new LeftOut(`its filter ${quoted(title)} has a sample that Sluice has no field for`, rulesWay)
  parts.sample = Number((share * 100).toFixed(6))
  if (/^(?:\$\.)?(?:userId|anonymousId)$/.test(textOf(action, 'path'))) return
  parts.notes.push({
    kind: 'differs',
    about: parts.about,
    problem: `its filter ${quoted(title)} takes a sample of messages, and Sluice takes one of users`,
    way: 'nothing has to be done if that is fine (docs/conditions.md)',
  })
}

/** `allow` names all fields that are left, so all others at the top level are named too. */
function addAllowed(parts: Parts, title: string, action: Item): void {
  const objects = Object.keys(recordOf(action['fields']))
  if (parts.allow !== undefined || !objects.every((name) => /^(?:properties|traits|context)$/.test(name)))
    throw new LeftOut(
      `its filter ${quoted(title)} allows fields in a way that Sluice has no field for`,
      rulesWay,
    )
  const others = messageFields.filter((name) => !objects.includes(name))
  parts.allow = [...others, ...pathsOf(action)]
}

/** Returns the paths of fields: `{ context: ["ip"] }` is context.ip. */
function pathsOf(action: Item): readonly string[] {
  return Object.entries(recordOf(action['fields'])).flatMap(([object, value]) => {
    const names = listOf(Array.isArray(value) ? value : recordOf(value)['fields'])
    return names.filter(isString).map((name) => (object === '' ? name : `${object}.${name}`))
  })
}

/** Translates FQL. `what`: what has it, for the note if it can't be translated. */
export function translated(fql: string, what: string): string {
  const read = conditionOfFql(fql)
  if (read.ok) return read.condition
  throw new LeftOut(
    `${what} is ${JSON.stringify(fql)}, which can't be translated: ${read.fault}`,
    'write a condition by hand (docs/conditions.md)',
  )
}

function quoted(text: string): string {
  return JSON.stringify(text)
}
