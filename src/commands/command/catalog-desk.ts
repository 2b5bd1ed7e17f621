import { readFile } from 'node:fs/promises'
import { text as textOfStream } from 'node:stream/consumers'
import type { Logger } from 'pino'
import { formatFaults } from '../../catalog/fault.ts'
import { readUncheckedCatalog } from '../../catalog/parse.ts'
import { isRecord } from '../../catalog/plain-data.ts'
import type { Config } from '../../config/schema.ts'
import { openCatalogDesk, type OpenedDesk } from '../../roles/operations/catalog-desk.ts'
import { StartError, WrongUseError } from '../../roles/start/start-error.ts'

export type CatalogRun = { readonly config: Config; readonly log: Logger }

/** Opens the desk of the catalog's topic for a piece of work, and closes it. */
export async function atCatalogDesk<T>(
  { config, log }: CatalogRun,
  role: 'catalog' | 'destinations',
  work: (desk: OpenedDesk) => Promise<T>,
): Promise<T> {
  const desk = await openCatalogDesk(config, log, role)
  try {
    return await work(desk)
  } finally {
    await desk.close()
  }
}

/**
 * Reads a block of keys, YAML or JSON, from a file, or from standard input if the path is `-`. `ifOther`:
 * what is wrong if it is anything else.
 */
export async function readBlock(path: string, ifOther: string): Promise<Readonly<Record<string, unknown>>> {
  const [text, name] =
    path === '-'
      ? [await textOfStream(process.stdin), 'Standard input']
      : [await readFile(path, 'utf8').catch(unreadable(path)), path]
  const read = readUncheckedCatalog(text, name)
  if (!read.ok) throw new StartError(formatFaults(read.faults))
  if (!isRecord(read.value)) throw new StartError(`${name} ${ifOther}`)
  return read.value
}

function unreadable(path: string): (cause: unknown) => never {
  return (cause) => {
    throw new WrongUseError(
      `${path} can not be read: ${cause instanceof Error ? cause.message : String(cause)}`,
    )
  }
}
