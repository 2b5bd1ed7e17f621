import { type Fault, faultOf } from '../catalog/fault.ts'
import { recordOf } from '../catalog/plain-data.ts'
import type { Quota } from '../catalog/labels.ts'
import type { Definition } from './definitions.ts'
import type { StoredObject } from './log.ts'
import { keyOf, nameOf, type ObjectName } from './names.ts'

/**
 * Returns a fault for each edited destination that gets a value of a label that too many would then have.
 * What already has the value may be edited, also if a quota was lowered. `after`: the edited objects by key.
 * `coming`: other objects that are about to be written.
 */
export function quotaFaults(
  edited: readonly ObjectName[],
  after: ReadonlyMap<string, Definition | undefined>,
  {
    objects,
    coming,
    quotas,
  }: {
    readonly objects: ReadonlyMap<string, StoredObject>
    readonly coming: ReadonlyMap<string, Definition | undefined>
    readonly quotas: readonly Quota[]
  },
): readonly Fault[] {
  const next = new Map([...coming, ...after])
  return quotas.flatMap(({ label, most }) => {
    const valueOf = (definition: Definition | undefined): unknown => recordOf(definition?.['labels'])[label]
    const grown = edited.filter(({ kind, id }) => {
      const key = keyOf({ kind, id })
      const value = valueOf(after.get(key))
      return kind === 'destination' && value !== undefined && value !== valueOf(objects.get(key)?.definition)
    })
    if (grown.length === 0) return []
    const counts = new Map<unknown, number>()
    const add = (value: unknown): void => void counts.set(value, (counts.get(value) ?? 0) + 1)
    for (const [key, { kind, definition }] of objects)
      if (kind === 'destination' && !next.has(key)) add(valueOf(definition))
    for (const [key, definition] of next) if (nameOf(key)?.kind === 'destination') add(valueOf(definition))
    return grown.flatMap((name): Fault[] => {
      const value = valueOf(after.get(keyOf(name)))
      const count = counts.get(value) ?? 0
      if (count <= most) return []
      const problem = `is one of ${count} destinations with ${label}=${String(value)}, and ${most} may have it (catalog.quotas)`
      return [
        faultOf(keyOf(name), problem, 'remove others first, or ask whoever runs Sluice', `labels.${label}`),
      ]
    })
  })
}
