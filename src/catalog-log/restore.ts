import type { Edit } from './judge.ts'
import type { CatalogLog, StoredObject } from './log.ts'
import { keyOf, type ObjectName } from './names.ts'
import type { Definitions } from './definitions.ts'

/** What becomes of objects that were changed after the export. */
export type Newer = 'refuse' | 'keep' | 'replace'

export type RestorePlan = {
  readonly edits: readonly Edit[]
  /** The objects that were made, changed or removed after the export, and differ from it. */
  readonly newer: readonly ObjectName[]
  /** True if records of the topic were destroyed, so that all of it is written again. */
  readonly isRepair: boolean
}

/** Compares an export with the topic. Throws a `SealError` if a secret of the export can't be opened. */
export function planRestore(
  definitions: Definitions,
  { present, exported }: { readonly present: CatalogLog; readonly exported: CatalogLog },
  what: Newer,
): RestorePlan {
  const isRepair = present.damage !== undefined
  const since = exported.head?.revision ?? 0
  const isSameLog = exported.head?.lineage === present.head?.lineage
  const hasLater = (present.head?.revision ?? 0) > since
  const newer: ObjectName[] = []
  const edits: Edit[] = []
  for (const [key, object] of exported.all) {
    if (isSession(object)) continue
    const { kind, id, definition } = object
    const name = { kind, id }
    // Throws here, and not while the change is made.
    definitions.plain(name, definition)
    const now = present.all.get(key)
    const isSame = definitions.isSame(name, now?.definition, definition)
    if (isSame && !isRepair) continue
    // An object that the topic lacks was removed after the export, unless the topic has lost what it had.
    const wasRemoved = hasLater && isSameLog && !isRepair
    const isNewer = !isSame && (now === undefined ? wasRemoved : now.revision > since)
    if (isNewer) newer.push(name)
    if (!isNewer || what === 'replace')
      edits.push({ name, op: 'restore', stored: definition, base: baseOf(now) })
    else if (isRepair && now !== undefined) edits.push(again(now))
  }
  for (const [key, object] of present.all) {
    if (isSession(object)) {
      if (isRepair) edits.push(again(object))
      continue
    }
    if (exported.all.has(key)) continue
    newer.push({ kind: object.kind, id: object.id })
    if (what === 'replace') edits.push({ name: nameOf(object), op: 'remove', base: object.version })
    else if (isRepair) edits.push(again(object))
  }
  return { edits, newer, isRepair }
}

/** A session of a browser, or its one-time code. One that has ended must not come back. */
function isSession(object: StoredObject): boolean {
  return object.kind === 'token' && typeof object.definition['of'] === 'string'
}

function again(object: StoredObject): Edit {
  return { name: nameOf(object), op: 'restore', stored: object.definition, base: object.version }
}

function nameOf({ kind, id }: StoredObject): ObjectName {
  return { kind, id }
}

function baseOf(present: StoredObject | undefined): number | 'none' {
  return present?.version ?? 'none'
}

export function namesOf(names: readonly ObjectName[], most: number): string {
  const left = names.length - most
  return `${names.slice(0, most).map(keyOf).join(', ')}${left > 0 ? `, and ${left} more` : ''}`
}
