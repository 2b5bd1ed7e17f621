import { isSelected, type Labels, type LabelSelector } from '../../catalog/labels.ts'
import { isRecord, isString, recordOf } from '../../catalog/plain-data.ts'
import type { Definition } from '../../catalog-log/definitions.ts'
import type { Edit } from '../../catalog-log/judge.ts'
import type { CatalogLog, StoredObject } from '../../catalog-log/log.ts'
import { isEntry, keyOf, type ObjectName } from '../../catalog-log/names.ts'

/** An object that is to be as it is given. */
export type WantedObject = {
  readonly name: ObjectName
  readonly given: Definition
}

/**
 * The fields that have commands and calls of their own: pause and resume, rotations, keys of sources. What is
 * given without such a field leaves it as it is, and null removes it. Otherwise, a commit about something
 * else would resume what somebody has paused at night, and take away secrets that Git never had.
 */
const ownFields = {
  source: [['writeKeys'], ['serverKeys']],
  destination: [
    ['state'],
    ['sharedSecret'],
    ['nextSharedSecret'],
    ['sharedSecretEndsAt'],
    ['signing', 'ed25519'],
  ],
} as const

export type ApplyOptions = {
  readonly log: Pick<CatalogLog, 'objects'>
  /** Shows objects without their secrets: with what stands for them, and keeps them if it is written back. */
  readonly desk: { shown(object: StoredObject, how: { readonly showsUrls: boolean }): Definition }
  /** The label of what is removed if it isn't wanted. */
  readonly pruned: LabelSelector | undefined
}

/**
 * Returns the edits that make objects as they are wanted. With a label, those that have it and are not wanted
 * are removed. Each edit is based on the version that was seen, so that nothing is overwritten that came
 * since.
 */
export function appliedEdits(
  objects: ReadonlyMap<string, WantedObject>,
  { log, desk, pruned }: ApplyOptions,
): readonly Edit[] {
  const puts = [...objects].map(([key, { name, given }]): Edit => {
    const object = log.objects.get(key)
    const present = object === undefined ? {} : desk.shown(object, { showsUrls: true })
    return { name, op: 'put', given: withOwnFields(name, given, present), base: object?.version ?? 'none' }
  })
  if (pruned === undefined) return puts
  const gone = [...log.objects.values()].filter(
    (object) => !objects.has(keyOf(object)) && isSelected(labelsOf(object), pruned),
  )
  return [...puts, ...gone.map((object): Edit => ({ ...removalOf(object), base: object.version }))]
}

function withOwnFields(name: ObjectName, given: Definition, present: Definition): Definition {
  if (!isEntry(name)) return given
  return ownFields[name.kind].reduce((wanted: Definition, path) => withKept(wanted, present, path), given)
}

function withKept(
  given: Definition,
  present: Definition,
  [field = '', ...rest]: readonly string[],
): Definition {
  const { [field]: own, ...others } = given
  const kept = present[field]
  if (rest.length === 0) {
    if (own === null) return others
    return own !== undefined || kept === undefined ? given : { ...given, [field]: kept }
  }
  // What isn't a record is a fault, which the rules of the catalog tell.
  if (own !== undefined && !isRecord(own)) return given
  const inner = withKept(recordOf(own), recordOf(kept), rest)
  return own === undefined && Object.keys(inner).length === 0 ? given : { ...given, [field]: inner }
}

/** Returns the destinations that stay paused or off, because what is given doesn't say their state. */
export function keptStates(
  objects: ReadonlyMap<string, WantedObject>,
  edits: readonly Edit[],
): readonly { readonly key: string; readonly state: string }[] {
  return edits.flatMap((edit) => {
    const key = keyOf(edit.name)
    const state = edit.op === 'put' ? edit.given['state'] : undefined
    const isKept = isString(state) && state !== 'on' && objects.get(key)?.given['state'] === undefined
    return isKept ? [{ key, state }] : []
  })
}

/**
 * Returns why objects are not pruned: nothing that is wanted has the label, so all that have it would be
 * removed. A folder that wasn't mounted, or a program that wrote nothing, must not remove a customer.
 * `allow`: how to say that this is meant.
 */
export function pruneRefusal(
  objects: ReadonlyMap<string, WantedObject>,
  edits: readonly Edit[],
  { pruned, allow }: { readonly pruned: LabelSelector | undefined; readonly allow: string },
): string | undefined {
  const removed = edits.filter(({ op }) => op === 'remove').length
  if (pruned === undefined || removed === 0) return undefined
  if ([...objects.values()].some(({ given }) => isSelected(labelsOf({ definition: given }), pruned)))
    return undefined
  const all = removed === 1 ? 'the only object that has it' : `all ${removed} objects that have it`
  return `Nothing that is given has the label ${pruned.key}=${pruned.value}, so ${all} would be removed. Nothing was changed. Look whether the files are whole. If this is meant, ${allow}.`
}

export function removalOf({ kind, id }: StoredObject): Edit {
  return { name: { kind, id }, op: 'remove' }
}

export function labelsOf({ definition }: Pick<StoredObject, 'definition'>): Labels {
  const labels = Object.entries(recordOf(definition['labels']))
  return Object.fromEntries(labels.flatMap(([key, value]) => (isString(value) ? [[key, value]] : [])))
}
