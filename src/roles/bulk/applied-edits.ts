import { isSelected, type Labels, type LabelSelector } from '../../catalog/labels.ts'
import { isString, recordOf } from '../../catalog/plain-data.ts'
import type { Edit } from '../../catalog-log/judge.ts'
import type { CatalogLog, StoredObject } from '../../catalog-log/log.ts'
import { keyOf, type ObjectName } from '../../catalog-log/names.ts'

/** An object that is to be as it is given. */
export type WantedObject = {
  readonly name: ObjectName
  readonly given: Readonly<Record<string, unknown>>
}

/**
 * Returns the edits that make objects as they are wanted. With a label, those that have it and are not wanted
 * are removed. Each edit is based on the version that was seen, so that nothing is overwritten that came
 * since.
 */
export function appliedEdits(
  objects: ReadonlyMap<string, WantedObject>,
  log: Pick<CatalogLog, 'objects'>,
  pruned: LabelSelector | undefined,
): readonly Edit[] {
  const puts = [...objects].map(([key, { name, given }]): Edit => ({
    name,
    op: 'put',
    given,
    base: log.objects.get(key)?.version ?? 'none',
  }))
  if (pruned === undefined) return puts
  const gone = [...log.objects.values()].filter(
    (object) => !objects.has(keyOf(object)) && isSelected(labelsOf(object), pruned),
  )
  return [...puts, ...gone.map((object): Edit => ({ ...removalOf(object), base: object.version }))]
}

export function removalOf({ kind, id }: StoredObject): Edit {
  return { name: { kind, id }, op: 'remove' }
}

export function labelsOf({ definition }: Pick<StoredObject, 'definition'>): Labels {
  const labels = Object.entries(recordOf(definition['labels']))
  return Object.fromEntries(labels.flatMap(([key, value]) => (isString(value) ? [[key, value]] : [])))
}
