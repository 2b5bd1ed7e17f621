import { createHash } from 'node:crypto'
import type { Catalog } from '../../catalog/catalog.ts'
import { changesBetween } from '../../catalog/changes.ts'
import { type Fault, formatFault, maxFaults } from '../../catalog/fault.ts'
import { unknownPem } from '../../catalog/features/hook-tls.ts'
import { openCatalogFile, type OpenedCatalogFile } from '../../catalog/file/file.ts'
import type { KnownCatalog } from '../../catalog/file/lost-entries.ts'
import { outlineOf } from '../../catalog/outline.ts'
import type { Variables } from '../../catalog/variables.ts'
import { catalogVariables } from '../../config/read.ts'
import type { Config } from '../../config/schema.ts'
import { CatalogMemory } from '../../roles/catalog/memory.ts'
import { counted } from '../../roles/start/progress.ts'
import { StartError } from '../../roles/start/start-error.ts'

export type CatalogCheck = {
  /** The file to check. `undefined`: the file of `catalog.file`. */
  readonly path: string | undefined
  /**
   * An earlier version of the file, with which it is compared. `undefined`: the catalog that was last in
   * force with the state folder of this machine, if there is one.
   */
  readonly against?: string | undefined
  /** True: a variable that this process doesn't have is not a fault. */
  readonly mayLackVariables: boolean
}

/**
 * Checks a catalog as a worker would, and describes the catalog in lines. Throws an error that lists the
 * faults if there are any, and if the catalog lacks too many entries of the earlier one.
 */
export async function checkCatalog(
  config: Config,
  { path = config.catalog.file, against, mayLackVariables }: CatalogCheck,
): Promise<string[]> {
  const troubles: string[] = []
  const memory = new CatalogMemory(config, ({ file, reason }) =>
    troubles.push(`The file was not compared with ${file}: ${reason}`),
  )
  const earlier =
    against === undefined ? undefined : (await readOnce(config, against, mayLackVariables)).catalog
  const known =
    earlier === undefined
      ? await memory.known()
      : { outline: outlineOf(earlier), of: `${against}`, ifAnother: '' }
  const { catalog, lacking } = await readOnce(config, path, mayLackVariables, known)
  return [
    `${path} has no faults: ${describe(catalog)}`,
    ...(known === undefined ? [] : describeChanges(known, earlier, catalog)),
    ...troubles,
    ...(lacking.length === 0 ? [] : [`These variables are not set here: ${lacking.join(', ')}`]),
  ]
}

async function readOnce(
  { catalog: { variablesFolder }, delivery: { allowAddresses } }: Config,
  path: string,
  mayLackVariables: boolean,
  known?: KnownCatalog,
): Promise<{ catalog: Catalog; lacking: readonly string[] }> {
  const check = async (variables: Variables): Promise<OpenedCatalogFile> => {
    const handlers = { onChange: ignore, onRefused: ignore }
    const read = await openCatalogFile({
      path,
      variables,
      variablesFolder,
      allowAddresses,
      known,
      ...handlers,
    })
    if (read.ok) read.file.stop()
    return read
  }
  const given = catalogVariables()
  let opened = await check(given)
  const lacking = mayLackVariables ? lackingIn(faultsOf(opened)) : new Map<string, StandIn>()
  if (lacking.size > 0) {
    const standIns = [...lacking].map(([name, kind]) => [name, standIn(name, kind)])
    opened = await check({ ...given, ...Object.fromEntries(standIns) })
  }
  const faults = faultsOf(opened)
  if (!opened.ok || faults.length > 0) {
    const count =
      faults.length > maxFaults ? `more than ${maxFaults} faults` : counted(faults.length, 'fault')
    throw new StartError(`${path} has ${count}:\n${faults.map(formatFault).join('\n')}`)
  }
  return { catalog: opened.file.current(), lacking: [...lacking.keys()] }
}

/** Returns the faults of a file, or of some files of a folder, of which a process would use the others. */
function faultsOf(opened: OpenedCatalogFile): readonly Fault[] {
  return opened.ok ? (opened.file.refused()?.faults ?? []) : opened.faults
}

function ignore(): void {}

/**
 * What the value of a variable has to be: a URL or its beginning, a certificate or key, or any other text.
 */
type StandIn = 'url' | 'pem' | 'text'

/** Returns the names of the variables that aren't set, and what their values have to be. */
function lackingIn(faults: readonly Fault[]): ReadonlyMap<string, StandIn> {
  const lacking = new Map<string, StandIn>()
  for (const { variable, isUrl = false, isPem = false } of faults) {
    if (variable === undefined) continue
    const kind = isUrl ? 'url' : isPem ? 'pem' : 'text'
    if (kind !== 'text' || !lacking.has(variable)) lacking.set(variable, kind)
  }
  return lacking
}

/**
 * Returns a value for a variable that isn't set. The rules for secrets, keys, headers and URLs allow this
 * value, also together with other text.
 */
function standIn(name: string, kind: StandIn): string {
  if (kind === 'pem') return unknownPem
  const text = createHash('sha256').update(name).digest('hex').slice(0, 48)
  return kind === 'url' ? `https://example.com/${text}` : text
}

/** Describes how a catalog differs from an earlier one, in a line for each list of entries. */
function describeChanges(known: KnownCatalog, earlier: Catalog | undefined, catalog: Catalog): string[] {
  const before = earlier === undefined ? known : { ...known, catalog: earlier }
  const changes = Object.entries(changesBetween(before, { outline: outlineOf(catalog), catalog }))
  if (changes.length === 0) return [`No entry differs from ${known.of}`]
  return changes.map(([list, texts]) => `Changed ${list}, compared with ${known.of}: ${texts.join('; ')}`)
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
