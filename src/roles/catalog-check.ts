import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Catalog } from '../catalog/catalog.ts'
import { formatFaults } from '../catalog/fault.ts'
import { openCatalogFile } from '../catalog/file.ts'
import { variablesIn, type Variables } from '../catalog/variables.ts'
import { catalogVariables } from '../config/read.ts'
import type { Config } from '../config/schema.ts'
import { counted } from './progress.ts'
import { StartError } from './start-error.ts'

export type CatalogCheck = {
  /** The file to check. `undefined`: the file of `catalog.file`. */
  readonly path: string | undefined
  /** True if variables that this process doesn't have are no faults. */
  readonly mayLackVariables: boolean
}

/**
 * Checks a catalog as a worker would, and describes the catalog in lines. Throws an error that lists all
 * faults if there are any.
 */
export async function checkCatalog(
  { catalog, delivery: { allowAddresses } }: Config,
  { path = catalog.file, mayLackVariables }: CatalogCheck,
): Promise<string[]> {
  const known = catalogVariables()
  // If the file can't be read, the check below says so.
  const text = mayLackVariables ? await readFile(path, 'utf8').catch(() => '') : ''
  const lacking = variablesIn(text).filter((name) => (known[name] ?? '') === '')
  const variables: Variables = {
    ...known,
    ...Object.fromEntries(lacking.map((name) => [name, standIn(name)])),
  }
  const opened = await openCatalogFile({
    path,
    variables,
    allowAddresses,
    onChange: ignore,
    onRefused: ignore,
  })
  if (!opened.ok) {
    const faults = counted(opened.faults.length, 'fault')
    throw new StartError(`${path} has ${faults}:\n${formatFaults(opened.faults)}`)
  }
  opened.file.stop()
  return [
    `${path} has no faults: ${describe(opened.file.current())}`,
    ...(lacking.length === 0 ? [] : [`These variables are not set here: ${lacking.join(', ')}`]),
  ]
}

function ignore(): void {}

/**
 * Returns a value for a variable that isn't set. The rules for secrets, keys and headers allow this value.
 */
function standIn(name: string): string {
  return `whsec_${createHash('sha256').update(name).digest('base64')}`
}

function describe({ sources, destinations, version }: Catalog): string {
  const all = [...destinations.values()]
  const hooks = all.reduce((sum, one) => sum + one.hooks.length, 0)
  const states = (['off', 'paused'] as const).flatMap((state) => {
    const count = all.filter((one) => one.state === state).length
    return count === 0 ? [] : [`${count} ${state}`]
  })
  const notOn = states.length === 0 ? '' : ` (${states.join(', ')})`
  return `${counted(sources.size, 'source')}, ${counted(all.length, 'destination')}${notOn}, ${counted(hooks, 'URL')}, version ${version}`
}
