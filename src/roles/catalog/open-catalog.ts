import type { Logger } from 'pino'
import type { Catalog } from '../../catalog/catalog.ts'
import { changesBetween } from '../../catalog/changes.ts'
import { type CatalogFile, type CatalogFileOptions, openCatalogFile } from '../../catalog/file.ts'
import type { KnownCatalog } from '../../catalog/lost-entries.ts'
import { changedDestinations, stateCountsOf } from '../../catalog/next-catalog.ts'
import { outlineOf } from '../../catalog/outline.ts'
import { catalogVariables } from '../../config/read.ts'
import type { Config } from '../../config/schema.ts'
import type { KafkaRole } from '../../topics/kafka-roles.ts'
import type { CommonMetrics } from '../../telemetry/common-metrics.ts'
import { showCatalog } from '../../telemetry/show-state.ts'
import { Listeners } from '../../async/listeners.ts'
import { topicNames } from '../start/settings.ts'
import { CatalogMemory } from './memory.ts'
import { type CatalogTopic, type CatalogTopicLog, readCatalogTopic } from './followed-topic.ts'
import { StartError } from '../start/start-error.ts'

export type OpenCatalogOptions = {
  config: Config
  metrics: CommonMetrics
  log: Logger
  /** The role that reads the catalog. */
  role: KafkaRole
  /** The private addresses that hooks may have. Roles that send nothing to hooks don't set this. */
  allowAddresses?: readonly string[]
  /** Says whether the log line about a change of the catalog counts sources or destinations. */
  counts?: 'sources' | 'destinations'
}

export type RoleCatalog = Omit<CatalogFile, 'stop'> & {
  /**
   * Says that the role has started. From now on, the state folder has the outline of the catalog in force. A
   * role that never starts doesn't use its catalog, so it leaves the outline as it is.
   */
  inForce(): void
  /**
   * Calls `listener` after each change of the file's catalog, once the gauges and the log show the change.
   */
  onChange(listener: (catalog: Catalog, before: Catalog) => void): void
  /** What else the topic of the catalog has. Absent if the catalog is in a file. */
  readonly topic?: Pick<CatalogTopic, 'tokens' | 'revision'>
  /** Stops at once. Resolves once the outline is written. */
  stop(): Promise<void>
}

/**
 * Opens the catalog of a role, and shows the version in force in gauges and log. If the catalog is faulty, or
 * lacks too many entries of the catalog that was last in force, throws an error that lists all faults.
 */
export function openCatalog(options: OpenCatalogOptions): Promise<RoleCatalog> {
  return options.config.catalog.source === 'topic' ? openFromTopic(options) : openFromFile(options)
}

async function openFromTopic({
  config,
  metrics,
  log,
  role,
  counts,
}: OpenCatalogOptions): Promise<RoleCatalog> {
  const listeners = new Listeners<[catalog: Catalog, before: Catalog]>()
  const memory = new CatalogMemory(config, (about, message) => log.warn(about, message))
  const read = await readCatalogTopic({ config, log, role })
  refuseEarlier(read.revision, await memory.known(), config)
  let isInForce = false
  const keep = (catalog: Catalog): void => {
    if (isInForce) memory.keep(() => outlineOf(catalog))
  }
  const topic = read.follow((catalog, before, { changes, by }) => {
    showCatalog(metrics, catalog.version, stateCountsOf(catalog))
    const count = counts === undefined ? {} : { [counts]: catalog[counts].size }
    log.info({ version: catalog.version, ...count, by, changes }, 'the catalog has changed')
    keep(catalog)
    listeners.tell(catalog, before)
  })
  const first = topic.current()
  showCatalog(metrics, first.version, stateCountsOf(first))
  if (first.destinations.size === 0) log.warn({ topic: topicNames(config).catalog }, emptyTopic)
  metrics.catalogRefused.follow(() => (topic.refused() === undefined ? 0 : 1))
  return {
    current: () => topic.current(),
    refused: () => topic.refused(),
    onChange: (listener) => listeners.add(listener),
    topic,
    inForce() {
      isInForce = true
      keep(topic.current())
    },
    async stop() {
      await Promise.all([topic.stop(), memory.idle()])
    },
  }
}

const emptyTopic =
  'the catalog has no destinations: `sluice destinations set` makes one, and `sluice catalog import` takes a file'

/**
 * Throws if the topic has fewer changes than this machine has seen: it was made anew, or has lost its end.
 */
function refuseEarlier(revision: number, known: KnownCatalog | undefined, config: Config): void {
  const seen = Number(/^r(\d+)$/.exec(known?.outline.version ?? '')?.[1] ?? 0)
  if (revision >= seen || known === undefined) return
  const { catalog } = topicNames(config)
  throw new StartError(
    `The topic ${catalog} ends with change ${revision}, and this machine has seen change ${seen}: the topic was made anew, or has lost records. Import an export of the catalog: \`sluice catalog import FILE\`${known.ifAnother}.`,
  )
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
    onRefused(faults) {
      log.error({ faults }, 'the catalog file has faults: the previous version stays in force')
    },
  })
  const first = file.current()
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

/** The most removed destinations that a log line names. */
const maxNamed = 50

/** Says how many deliveries wait in this process for destinations that were removed from the catalog. */
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
