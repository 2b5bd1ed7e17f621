import { openCatalogFile } from '../catalog/file.ts'
import { catalogVariables } from '../config/read.ts'
import type { Config } from '../config/schema.ts'
import { StartError } from './start-error.ts'

/**
 * Throws with every fault of the catalog, before more is started than needed for that. Addresses are looked
 * at by the worker.
 */
export async function refuseFaultyCatalog({ catalog }: Config): Promise<void> {
  const opened = await openCatalogFile({
    path: catalog.file,
    variables: catalogVariables(),
    onChange() {},
    onRefused() {},
  })
  if (!opened.ok) throw new StartError(opened.message)
  opened.file.stop()
}
