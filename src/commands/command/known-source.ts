import type { Logger } from 'pino'
import type { Catalog, Source } from '../../catalog/catalog.ts'
import { nearest } from '../../catalog/nearest.ts'
import type { Config } from '../../config/schema.ts'
import { readCatalog } from '../../roles/catalog/open-catalog.ts'
import { StartError } from '../../roles/start/start-error.ts'
import type { KafkaRole } from '../../topics/kafka-roles.ts'
import { anySourceOption } from './tools.ts'

type Wanted = {
  readonly sourceId: string
  readonly role: Extract<KafkaRole, 'send' | `audience ${string}`>
  /** True: nothing is checked, and the catalog isn't read. */
  readonly isAnySource: boolean
}

/**
 * Throws if the catalog lacks the source, because all that is sent would become dead letters, and if a role
 * sends changes of audiences for a source that is no space. Whoever sends may have no catalog: then this
 * returns a line that says so.
 */
export async function refuseUnknownSource(
  config: Config,
  log: Logger,
  { sourceId, role, isAnySource }: Wanted,
): Promise<string | undefined> {
  if (isAnySource) return undefined
  let catalog: Catalog
  try {
    catalog = await readCatalog(config, log, role)
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    return `The source is not checked, because the catalog can not be read: ${error.message}`
  }
  const isForSpaces = role !== 'send'
  const source = catalog.sources.get(sourceId)
  if (source !== undefined && (!isForSpaces || isSpace(source))) return undefined
  throw new StartError(
    `${whatIsWrong(catalog, { sourceId, isForSpaces })} Workers would make dead letters of ${isForSpaces ? 'its changes' : 'its messages'}, ` +
      `so nothing was sent. To send all the same, give ${anySourceOption[0]}.`,
  )
}

function whatIsWrong(
  { sources }: Catalog,
  { sourceId, isForSpaces }: { readonly sourceId: string; readonly isForSpaces: boolean },
): string {
  const possible = [...sources.values()].filter((source) => !isForSpaces || isSpace(source))
  const meant = nearest(
    sourceId,
    possible.map(({ id }) => id),
  )
  const suggested = meant === undefined ? '.' : `: did you mean ${meant}?`
  const quoted = JSON.stringify(sourceId)
  if (!isForSpaces) return `The catalog has no source ${quoted}${suggested}`
  const lacking = sources.has(sourceId)
    ? `The source ${quoted} is no space, because it lacks \`kind: audiences\`${suggested}`
    : `The catalog has no space ${quoted}${suggested}`
  if (possible.length > 0) return lacking
  return `${lacking} A space is a source of the catalog: \`{ id: personas, kind: audiences }\`. In a topic, \`echo 'kind: audiences' | sluice sources set personas -\` makes it.`
}

function isSpace({ kind }: Source): boolean {
  return kind === 'audiences'
}
