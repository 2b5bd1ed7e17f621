import { type CatalogList, catalogLists, type ExpectedCounts } from '../expected.ts'
import { type Fault, faultOf } from '../fault.ts'
import type { CatalogOutline } from '../outline.ts'

/**
 * A file may lose one entry of each list, and a tenth of the entries of each list. A file that loses more was
 * probably cut off, or made by a program that failed.
 */
const mayLose = { entries: 1, share: 0.1 } as const
/** The most ids that a fault names. */
const maxNamed = 20

/** An earlier catalog with which a file is compared. */
export type KnownCatalog = {
  readonly outline: CatalogOutline
  /** What the outline is of, in words, such as `the catalog in force`. */
  readonly of: string
  /** What to do if the file is another catalog, and not an edit of this one. Empty: that isn't possible. */
  readonly ifAnother: string
}

/**
 * Returns a fault for each list of which a new catalog lacks too many entries, unless the file says how many
 * entries the list has now (`expected`). A catalog without any entry is a fault too, if the earlier one had
 * entries. `file` is the name of the file.
 */
export function lossFaults(
  file: string,
  { outline, of, ifAnother }: KnownCatalog,
  next: Readonly<Record<CatalogList, ReadonlyMap<string, unknown>>>,
  expected: ExpectedCounts = {},
): readonly Fault[] {
  const isBare = catalogLists.every((list) => next[list].size === 0)
  return catalogLists.flatMap((list) => {
    const [before, count] = [outline[list], next[list].size]
    const lost = [...before.keys()].filter((id) => !next[list].has(id))
    const isSmall = lost.length <= mayLose.entries || lost.length <= before.size * mayLose.share
    if ((isBare ? lost.length === 0 : isSmall) || expected[list] !== undefined) return []
    const problem = `lacks ${lost.length} of the ${before.size} ${list} of ${of}: ${named(lost)}`
    const advice = `restore the whole file; if they are to be removed, write expect: { ${list}: ${count} } into it${ifAnother}`
    return [faultOf(file, problem, advice, list)]
  })
}

function named(ids: readonly string[]): string {
  const left = ids.length - maxNamed
  return `${ids.slice(0, maxNamed).join(', ')}${left > 0 ? `, and ${left} more` : ''}`
}
