import type { Logger } from 'pino'
import type { Catalog } from '../../catalog/catalog.ts'
import { changesBetween } from '../../catalog/changes.ts'
import { type Fault, formatFaults } from '../../catalog/fault.ts'
import {
  type CatalogFile,
  type CatalogFileOptions,
  type CatalogRefusal,
  openCatalogFile,
} from '../../catalog/file/file.ts'
import { readShownCatalog } from '../../catalog/file/shown-file.ts'
import { changedDestinations, stateCountsOf } from '../../catalog/next-catalog.ts'
import { outlineOf } from '../../catalog/outline.ts'
import { catalogVariables } from '../../config/read.ts'
import type { Config } from '../../config/schema.ts'
import type { KafkaRole } from '../../topics/kafka-roles.ts'
import { showCatalog } from '../../telemetry/show-state.ts'
import { Listeners } from '../../async/listeners.ts'
import { CatalogMemory } from './memory.ts'
import { readCatalogTopic } from './followed-topic.ts'
import type { OpenCatalogOptions, RoleCatalog } from './role-catalog.ts'
import type { CatalogTopicLog } from './load-topic.ts'
import { openFromTopic, readOrCopy } from './open-from-topic.ts'
import { TopicMemory } from './topic-memory.ts'
import { StartError } from '../start/start-error.ts'

/**
 * Opens the catalog of a role, and shows the version in force in gauges and log. If the catalog is faulty, or
 * lacks too many entries of the catalog that was last in force, throws an error that lists all faults.
 */
export function openCatalog(options: OpenCatalogOptions): Promise<RoleCatalog> {
  return options.config.catalog.source === 'topic' ? openFromTopic(options) : openFromFile(options)
}

async function openFromFile(options: OpenCatalogOptions): Promise<RoleCatalog> {
  const { config, metrics, log, allowAddresses, counts } = options
  const listeners = new Listeners<[catalog: Catalog, before: Catalog]>()
  const memory = new CatalogMemory(config, (about, message) => log.warn(about, message))
  const known = await memory.known()
  let isInForce = false
  const file = await openFile(config, {
    allowAddresses,
    known,
    onChange(catalog, before) {
      showCatalog(metrics, catalog.version, stateCountsOf(catalog))
      const was = { outline: outlineOf(before), catalog: before }
      const changes = changesBetween(was, { outline: outlineOf(catalog), catalog })
      const count = counts === undefined ? {} : { [counts]: catalog[counts].size }
      log.info({ version: catalog.version, ...count, changes }, 'the catalog has changed')
      if (isInForce) memory.keep(() => outlineOf(catalog))
      listeners.tell(catalog, before)
    },
    onRefused(faults, isPart) {
      log.error(
        { faults },
        isPart
          ? 'files of the catalog have faults: what they said before stays in force, and all others are used'
          : 'the catalog file has faults: the previous version stays in force',
      )
    },
  })
  const first = file.current()
  const refused = file.refused()
  if (refused !== undefined)
    log.error(
      { faults: refused.faults },
      'files of the catalog have faults: until they are mended, their destinations are paused, and messages for them wait',
    )
  showCatalog(metrics, first.version, stateCountsOf(first))
  if (known !== undefined && known.outline.version !== first.version) {
    const changes = changesBetween(known, { outline: outlineOf(first), catalog: first })
    log.info({ version: first.version, changes }, 'the catalog has changed since it was last in force here')
  }
  // The gauge reads the state from the file at each scrape. It can't rely on `onChange` and `onRefused`,
  // because neither is called when a faulty edit is undone.
  metrics.catalogRefused.follow(() => (file.refused() === undefined ? 0 : 1))
  return {
    current: () => file.current(),
    refused: () => file.refused(),
    problem: () => problemOf(config.catalog.file, file.refused()),
    onChange: (listener) => listeners.add(listener),
    inForce() {
      isInForce = true
      memory.keep(() => outlineOf(file.current()))
    },
    stop() {
      file.stop()
      return memory.idle()
    },
  }
}

/** The most faults of a file that other processes are told. */
const mostToldFaults = 20

function problemOf(path: string, refused: CatalogRefusal | undefined): string | undefined {
  if (refused === undefined) return undefined
  const { faults, sinceMs, isPart = false } = refused
  const since = new Date(sinceMs).toISOString()
  const what = isPart
    ? `Parts of ${path} have had faults since ${since}. What they said before stays in force, or, if there was none when the process started, their destinations are paused. All others are used:`
    : `${path} has had faults since ${since}, and what it said before stays in force:`
  const told = formatFaults(faults.slice(0, mostToldFaults))
  const left = faults.length - mostToldFaults
  return [what, told, ...(left > 0 ? [`and ${left} more`] : [])].join('\n')
}

/** The most removed destinations that a log line names. */
const maxNamed = 50

/**
 * Says how many deliveries wait in this process, and in the queues of its units, for destinations that were
 * removed from the catalog.
 */
export function tellWaiting(
  log: Pick<Logger, 'warn'>,
  waitingFor: (destinationId: string) => number,
  { now, before }: { readonly now: Catalog; readonly before: Catalog },
): void {
  const removed = [...changedDestinations(before, now)].filter(
    (id) => before.destinations.has(id) && !now.destinations.has(id),
  )
  const waiting = removed.map((id) => [id, waitingFor(id)] as const).filter(([, count]) => count > 0)
  if (waiting.length === 0) return
  log.warn(
    { waiting: Object.fromEntries(waiting.slice(0, maxNamed)), destinations: waiting.length },
    'destinations were removed for which deliveries wait in this process, and others may wait on the retry topics: all of them become dead letters (destination_removed); to deliver them, put the destinations back into the catalog, and replay the dead letters',
  )
}

/**
 * Reads the present catalog once, for a command. If the catalog is faulty, throws an error that lists all
 * faults.
 */
export async function readCatalog(config: Config, log: CatalogTopicLog, role: KafkaRole): Promise<Catalog> {
  if (config.catalog.source === 'topic') return (await readCatalogTopic({ config, log, role })).current
  const file = await openFile(config, ignoreEdits)
  file.stop()
  return file.current()
}

export type ShownCatalog =
  /** `warnings`: why the catalog may be outdated, and what of it can't be used. */
  | { readonly catalog: Catalog; readonly warnings: readonly string[] }
  /** `faults`: why nothing of the file can be shown. */
  | { readonly catalog: undefined; readonly faults: string }

/** Reads the present catalog, or the copy on this machine, or what can be shown of a faulty file. */
export async function readCatalogOrCopy(
  config: Config,
  log: CatalogTopicLog,
  role: KafkaRole,
): Promise<ShownCatalog> {
  if (config.catalog.source === 'file') return readShownFile(config)
  const memory = new TopicMemory(config, log)
  const read = await readOrCopy({ config, log, role, known: undefined, memory, allowsUnusable: true })
  const { current, trouble, problem } = read
  if (trouble?.copy === undefined) {
    const warnings = problem === undefined ? [] : [`What this command can not use of the catalog. ${problem}`]
    return { catalog: current, warnings }
  }
  const { version } = current
  const time = new Date(trouble.copy.writtenMs).toISOString()
  const warning = `Whether the catalog is the present one: it is that of the copy on this machine (${version}, ${time}). ${trouble.problem}`
  return { catalog: current, warnings: [warning] }
}

async function readShownFile(config: Config): Promise<ShownCatalog> {
  const { file: path, variablesFolder } = config.catalog
  const place = { path, variables: catalogVariables(), variablesFolder }
  const opened = await openCatalogFile({ ...place, ...ignoreEdits })
  if (opened.ok) {
    opened.file.stop()
    const refused = opened.file.refused()
    const warnings = refused === undefined ? [] : [faultyFile(path, refused.faults)]
    return { catalog: opened.file.current(), warnings }
  }
  const faults = faultyFile(path, opened.faults)
  const catalog = await readShownCatalog(place)
  return catalog === undefined ? { catalog, faults } : { catalog, warnings: [faults] }
}

function faultyFile(path: string, faults: readonly Fault[]): string {
  const count = faults.length === 1 ? 'a fault' : `${faults.length} faults`
  return `Whether what ${path} says is in force: it has ${count}, so processes that run go on with what it said before.\n${formatFaults(faults)}`
}

/**
 * Throws an error that lists all faults of the catalog, if it has any, or if it lacks too many entries of the
 * catalog that was last in force. Call this before the parts of a role are started. The addresses of hooks
 * are checked later, by the worker.
 */
export async function refuseFaultyCatalog(config: Config): Promise<void> {
  if (config.catalog.source === 'topic') return
  // The role itself says so if it has no outline.
  const memory = new CatalogMemory(config, () => undefined)
  const file = await openFile(config, { ...ignoreEdits, known: await memory.known() })
  file.stop()
}

const ignoreEdits = { onChange: () => undefined, onRefused: () => undefined }

async function openFile(
  { catalog: { file: path, variablesFolder } }: Config,
  options: Omit<CatalogFileOptions, 'path' | 'variables' | 'variablesFolder'>,
): Promise<CatalogFile> {
  const opened = await openCatalogFile({ path, variables: catalogVariables(), variablesFolder, ...options })
  if (!opened.ok) throw new StartError(opened.message)
  return opened.file
}
