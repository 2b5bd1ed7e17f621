import type { Logger } from 'pino'
import type { Catalog } from '../catalog/catalog.ts'
import { type CatalogFile, type CatalogFileOptions, openCatalogFile } from '../catalog/file.ts'
import { catalogVariables } from '../config/read.ts'
import type { Config } from '../config/schema.ts'
import type { CommonMetrics } from '../telemetry/common-metrics.ts'
import { showCatalog } from '../telemetry/show-catalog.ts'
import { StartError } from './start-error.ts'

export type OpenCatalogOptions = {
  config: Config
  metrics: CommonMetrics
  log: Logger
  /** The private addresses that hooks may have. Roles that send nothing to hooks don't set this. */
  allowAddresses?: readonly string[]
  /**
   * Says whether the log line about a change of the catalog counts sources or destinations. If this is
   * absent, changes aren't logged.
   */
  counts?: 'sources' | 'destinations'
  /** Called after each change of the catalog, once the gauges and the log show the change. */
  onReplaced?: () => void
}

/**
 * Opens the catalog of a role, and shows the version in force in gauges and log. If the catalog is faulty,
 * throws an error that lists all faults.
 */
export async function openCatalog(options: OpenCatalogOptions): Promise<CatalogFile> {
  const { config, metrics, log, allowAddresses, counts, onReplaced } = options
  const file = await openFile(config, {
    allowAddresses,
    onChange(catalog) {
      showCatalog(metrics, catalog)
      if (counts !== undefined)
        log.info({ version: catalog.version, [counts]: catalog[counts].size }, 'the catalog has changed')
      onReplaced?.()
    },
    onRefused(faults) {
      log.error({ faults }, 'the catalog file has faults: the previous version stays in force')
    },
  })
  showCatalog(metrics, file.current())
  // The gauge reads the state from the file at each scrape. It can't rely on `onChange` and `onRefused`,
  // because neither is called when a faulty edit is undone.
  metrics.catalogRefused.follow(() => (file.refused() === undefined ? 0 : 1))
  return file
}

/**
 * Reads the present catalog once, for a command. If the catalog is faulty, throws an error that lists all
 * faults.
 */
export async function readCatalog(config: Config): Promise<Catalog> {
  const file = await openFile(config, { onChange: () => undefined, onRefused: () => undefined })
  file.stop()
  return file.current()
}

/**
 * Throws an error that lists all faults of the catalog, if it has any. Call this before the parts of a role
 * are started. The addresses of hooks are checked later, by the worker.
 */
export async function refuseFaultyCatalog(config: Config): Promise<void> {
  await readCatalog(config)
}

async function openFile(
  { catalog: { file: path } }: Config,
  options: Omit<CatalogFileOptions, 'path' | 'variables'>,
): Promise<CatalogFile> {
  const opened = await openCatalogFile({ path, variables: catalogVariables(), ...options })
  if (!opened.ok) throw new StartError(opened.message)
  return opened.file
}
