import type { Catalog } from '../../catalog/catalog.ts'
import { nearest } from '../../catalog/nearest.ts'
import type { Config } from '../../config/schema.ts'
import { readCatalog } from '../../roles/catalog/open-catalog.ts'

type Log = Parameters<typeof readCatalog>[1]

/** The ids that somebody gave. `undefined`: none was given. */
export type GivenIds = { readonly destination: string | undefined; readonly source: string | undefined }

/**
 * Says which of these ids the catalog lacks, a line for each. Refuses nothing, because the log also has what
 * became of deliveries to a destination that was removed since. Says nothing if the catalog can't be read:
 * whoever reads the log need not have it.
 */
export async function unknownIds(
  config: Config,
  log: Log,
  role: 'log find' | 'log tail',
  { destination, source }: GivenIds,
): Promise<string[]> {
  if (destination === undefined && source === undefined) return []
  let catalog: Catalog
  try {
    catalog = await readCatalog(config, log, role)
  } catch {
    return []
  }
  return [
    ...lacking('destination', destination, [...catalog.destinations.keys()]),
    ...lacking('source', source, [...catalog.sources.keys()]),
  ]
}

function lacking(kind: keyof GivenIds, id: string | undefined, known: readonly string[]): string[] {
  if (id === undefined || known.includes(id)) return []
  const meant = nearest(id, known)
  const suggested = meant === undefined ? '.' : `: did you mean ${meant}?`
  return [`The catalog has no ${kind} ${JSON.stringify(id)}${suggested}`]
}
