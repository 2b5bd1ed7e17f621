import type { Catalog } from '../catalog/catalog.ts'
import { openCatalogFile } from '../catalog/file.ts'
import { catalogVariables } from '../config/read.ts'
import type { Config } from '../config/schema.ts'
import { StartError } from './start-error.ts'

/** The catalog as it is now, for a command that ends. */
export async function readCatalog(config: Config): Promise<Catalog> {
  const opened = await openCatalogFile({
    path: config.catalog.file,
    variables: catalogVariables(),
    onChange: () => undefined,
    onRefused: () => undefined,
  })
  if (!opened.ok) throw new StartError(opened.message)
  opened.file.stop()
  return opened.file.current()
}
