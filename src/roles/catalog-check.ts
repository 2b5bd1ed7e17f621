import { createHash } from 'node:crypto'
import type { Catalog } from '../catalog/catalog.ts'
import { type Fault, formatFault, maxFaults } from '../catalog/fault.ts'
import { openCatalogFile } from '../catalog/file.ts'
import type { Variables } from '../catalog/variables.ts'
import { catalogVariables } from '../config/read.ts'
import type { Config } from '../config/schema.ts'
import { counted } from './progress.ts'
import { StartError } from './start-error.ts'

export type CatalogCheck = {
  /** The file to check. `undefined`: the file of `catalog.file`. */
  readonly path: string | undefined
  /** True: a variable that this process doesn't have is not a fault. */
  readonly mayLackVariables: boolean
}

/**
 * Checks a catalog as a worker would, and describes the catalog in lines. Throws an error that lists the
 * faults if there are any.
 */
export async function checkCatalog(
  { catalog, delivery: { allowAddresses } }: Config,
  { path = catalog.file, mayLackVariables }: CatalogCheck,
): Promise<string[]> {
  const check = (variables: Variables) =>
    openCatalogFile({ path, variables, allowAddresses, onChange: ignore, onRefused: ignore })
  const known = catalogVariables()
  let opened = await check(known)
  const lacking = mayLackVariables && !opened.ok ? lackingIn(opened.faults) : []
  if (lacking.length > 0)
    opened = await check({ ...known, ...Object.fromEntries(lacking.map((name) => [name, standIn(name)])) })
  if (!opened.ok) {
    const { faults } = opened
    const count =
      faults.length > maxFaults ? `more than ${maxFaults} faults` : counted(faults.length, 'fault')
    throw new StartError(`${path} has ${count}:\n${faults.map(formatFault).join('\n')}`)
  }
  opened.file.stop()
  return [
    `${path} has no faults: ${describe(opened.file.current())}`,
    ...(lacking.length === 0 ? [] : [`These variables are not set here: ${lacking.join(', ')}`]),
  ]
}

function ignore(): void {}

/** Returns the names of the variables that aren't set, each once. */
function lackingIn(faults: readonly Fault[]): readonly string[] {
  return [...new Set(faults.flatMap(({ variable }) => variable ?? []))]
}

/**
 * Returns a value for a variable that isn't set. The rules for secrets, keys and headers allow this value,
 * also together with other text.
 */
function standIn(name: string): string {
  return createHash('sha256').update(name).digest('hex').slice(0, 48)
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
