import isEqual from 'fast-deep-equal'
import { type Fault, faultOf } from '../catalog/fault.ts'
import { parseCatalogData } from '../catalog/parse.ts'
import { listOf, recordOf } from '../catalog/plain-data.ts'
import type { Quota } from '../catalog/labels.ts'
import type { Variables } from '../catalog/variables.ts'
import type { Definition, Definitions } from './definitions.ts'
import type { StoredObject } from './log.ts'
import { type EntryKind, keyOf, type ObjectName } from './names.ts'
import { quotaFaults } from './quotas.ts'

/**
 * A change of one object. `base`: the version of the object that the author has seen, or `none` if it must
 * not exist. Absent: whatever is there. `restore`: brings back a definition as it was stored earlier.
 */
export type Edit = { readonly name: ObjectName; readonly base?: number | 'none' } & (
  | { readonly op: 'put'; readonly given: Definition }
  | { readonly op: 'restore'; readonly stored: Definition }
  | { readonly op: 'remove' }
)

/**
 * An edit that is allowed. `definition`: `undefined` removes the object. `before`: `undefined` if it is new.
 */
export type Accepted = {
  readonly name: ObjectName
  readonly before: Definition | undefined
  readonly definition: Definition | undefined
}

export type Judged =
  | { readonly ok: true; readonly accepted: readonly Accepted[] }
  /** The object isn't the one that the author has seen. */
  | {
      readonly ok: false
      readonly kind: 'outdated'
      readonly name: ObjectName
      readonly present: StoredObject | undefined
    }
  /** The object that is to be removed doesn't exist. */
  | { readonly ok: false; readonly kind: 'missing'; readonly name: ObjectName }
  | { readonly ok: false; readonly kind: 'faulty'; readonly faults: readonly Fault[] }

export type JudgeOptions = {
  readonly definitions: Definitions
  readonly variables: Variables
  readonly allowAddresses: readonly string[]
  readonly atMs: number
  readonly quotas?: readonly Quota[]
  /** What is about to be written together with these edits, by key. */
  readonly coming?: ReadonlyMap<string, Definition | undefined>
  /** True: an object that stays the same is written again. */
  readonly isRepair?: boolean
}

/**
 * Decides whether edits may be made, all of them or none. `objects`: the objects before them. An edit that
 * changes nothing is left out of the result.
 */
export function judge(
  edits: readonly Edit[],
  objects: ReadonlyMap<string, StoredObject>,
  options: JudgeOptions,
): Judged {
  for (const { name, base, op } of edits) {
    const present = objects.get(keyOf(name))
    const isAsSeen =
      base === undefined || (base === 'none' ? present === undefined : present?.version === base)
    if (!isAsSeen) return { ok: false, kind: 'outdated', name, present }
    if (op === 'remove' && present === undefined) return { ok: false, kind: 'missing', name }
  }
  const after = new Map<string, Definition | undefined>()
  const faults: Fault[] = []
  for (const edit of edits) after.set(keyOf(edit.name), plainOf(edit, objects, { ...options, faults }))
  if (after.size < edits.length) throw new Error('a change set names an object twice')
  if (faults.length === 0) faults.push(...faultsOf(edits, after, objects, options))
  const { quotas = [], coming = new Map<string, undefined>() } = options
  const names = edits.map(({ name }) => name)
  if (faults.length === 0) faults.push(...quotaFaults(names, after, { objects, coming, quotas }))
  if (faults.length > 0) return { ok: false, kind: 'faulty', faults }
  const { definitions, atMs, isRepair = false } = options
  const accepted = edits.flatMap((edit): Accepted[] => {
    const { name } = edit
    const before = objects.get(keyOf(name))?.definition
    const plain = after.get(keyOf(name))
    if (plain === undefined) return [{ name, before, definition: undefined }]
    // What is restored keeps the times at which its secrets were set.
    const earlier = edit.op === 'restore' ? edit.stored : before
    const definition = definitions.stored(name, plain, { earlier, atMs })
    return isEqual(definition, before) && !isRepair ? [] : [{ name, before, definition }]
  })
  return { ok: true, accepted }
}

function plainOf(
  edit: Edit,
  objects: ReadonlyMap<string, StoredObject>,
  { definitions, variables, faults }: JudgeOptions & { readonly faults: Fault[] },
): Definition | undefined {
  const { name } = edit
  if (edit.op === 'remove') return undefined
  if (edit.op === 'restore') return definitions.plain(name, edit.stored)
  const earlier = objects.get(keyOf(name))?.definition
  const filled = definitions.fill(name, edit.given, { earlier, variables })
  for (const { path, problem, advice } of filled.faults)
    faults.push(faultOf(keyOf(name), problem, advice, path))
  if (edit.given['id'] !== name.id) {
    const advice = `write id: ${name.id}, or leave it out; an object is renamed by making another`
    faults.push(faultOf(keyOf(name), 'has another id than the object that is changed', advice, 'id'))
  }
  return filled.plain
}

/** Checks the edited objects by the rules of the catalog, with the others that these rules concern. */
function faultsOf(
  edits: readonly Edit[],
  after: ReadonlyMap<string, Definition | undefined>,
  objects: ReadonlyMap<string, StoredObject>,
  { definitions, allowAddresses }: JudgeOptions,
): readonly Fault[] {
  const now = (name: ObjectName): Definition | undefined => {
    const key = keyOf(name)
    if (after.has(key)) return after.get(key)
    const stored = objects.get(key)
    return stored && definitions.plain(name, stored.definition)
  }
  const edited = (kind: ObjectName['kind']) =>
    edits.map(({ name }) => name).filter((name) => name.kind === kind)
  const sourceIds = edited('source').map(({ id }) => id)
  const destinations: Definition[] = edited('destination').flatMap((name) => listIf(now(name)))
  const touched = new Set(sourceIds)
  for (const object of touched.size === 0 ? [] : objects.values()) {
    if (object.kind !== 'destination' || after.has(keyOf(object))) continue
    if (listOf(object.definition['sources']).some((id) => touched.has(String(id)))) {
      destinations.push(...listIf(now(object)))
    }
  }
  // All sources are checked together, because write keys are unique. If no source changes, those that are
  // named suffice.
  const ids =
    touched.size > 0
      ? [...sourceIds, ...[...objects.values()].filter(({ kind }) => kind === 'source').map(({ id }) => id)]
      : destinations.flatMap((one) => listOf(one['sources']).map(String))
  const sources = [...new Set(ids)].flatMap((id) => listIf(now({ kind: 'source', id })))
  const parsed = parseCatalogData(
    { sources, destinations },
    // Whoever only pauses a destination may have other settings than those who know its host.
    {
      file: 'the change',
      version: '',
      allowAddresses: hasNewHost(edits, after, objects) ? allowAddresses : undefined,
    },
  )
  return parsed.ok
    ? []
    : parsed.faults.map((fault) => withId(fault, { source: sources, destination: destinations }))
}

/** Returns true if an edit sends messages to a host to which the object hasn't sent any before. */
function hasNewHost(
  edits: readonly Edit[],
  after: ReadonlyMap<string, Definition | undefined>,
  objects: ReadonlyMap<string, StoredObject>,
): boolean {
  return edits.some(({ name }) => {
    const key = keyOf(name)
    const known = new Set(hostsOf(objects.get(key)?.definition))
    return hostsOf(after.get(key)).some((host) => !known.has(host))
  })
}

/** Returns the hosts of a definition, stored or plain. */
function hostsOf(definition: Definition = {}): readonly string[] {
  return listOf(definition['hooks']).flatMap((hook) => {
    const { url, login } = recordOf(hook)
    const { tokenUrl } = recordOf(login)
    const urls = typeof tokenUrl === 'string' ? [String(url), tokenUrl] : [String(url)]
    return urls.map((one) => URL.parse(one.split(' ')[0] ?? '')?.host ?? one)
  })
}

function listIf(definition: Definition | undefined): readonly Definition[] {
  return definition === undefined ? [] : [definition]
}

/** Names the object of a fault by its key, and not by its position in a list that the author doesn't know. */
function withId(fault: Fault, lists: Readonly<Record<EntryKind, readonly Definition[]>>): Fault {
  const match = /^(source|destination)s\[(\d+)\]\.?(.*)$/.exec(fault.path)
  if (match === null) return fault
  const [, kind, index, path = ''] = match
  const definition = lists[kind === 'source' ? 'source' : 'destination'][Number(index)]
  return { ...fault, file: `${kind}/${String(definition?.['id'])}`, path, id: undefined }
}
