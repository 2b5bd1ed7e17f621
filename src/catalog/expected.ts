import type { Breach } from './hook-rules.ts'
import type { Path } from './fault.ts'
import { isRecord, recordOf } from './plain-data.ts'

/** The lists of a catalog. */
export const catalogLists = ['destinations', 'sources'] as const
export type CatalogList = (typeof catalogLists)[number]

/** The numbers of entries that a catalog says it has (`expect`). */
export type ExpectedCounts = { readonly [List in CatalogList]?: number | undefined }

/**
 * Finds the numbers of `expect` that aren't the numbers of entries in the file. `root` need not be valid by
 * the schema.
 */
export function expectBreaches(root: unknown): readonly (readonly [Path, Breach])[] {
  const catalog = recordOf(root)
  const expected = recordOf(catalog['expect'])
  return catalogLists.flatMap((list): (readonly [Path, Breach])[] => {
    const [count, entries] = [expected[list], catalog[list]]
    if (!Number.isInteger(count) || !Array.isArray(entries) || entries.length === count) return []
    const problem = `is ${String(count)}, and the file has ${entries.length} ${list}`
    return [[['expect', list], { problem, advice: `restore the whole file, or write ${entries.length}` }]]
  })
}

/** Returns true if a document has nothing at all: no value, or a block without keys. */
export function isEmptyDocument(root: unknown): boolean {
  return root === null || (isRecord(root) && Object.keys(root).length === 0)
}
