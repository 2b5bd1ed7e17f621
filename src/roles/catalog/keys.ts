import { readFileSync } from 'node:fs'
import { type CatalogKeys, readKeys } from '../../catalog-log/keys.ts'
import type { Config } from '../../config/schema.ts'
import { messageOf } from '../../kafka/wire/errors.ts'
import { StartError } from '../start/start-error.ts'

const setting = 'catalog.keysFile (SLUICE_CATALOG_KEYS_FILE)'

/** Reads the keys of the catalog's topic. Throws if the file can't be used. */
export function catalogKeys({ catalog: { keysFile } }: Config): CatalogKeys {
  if (keysFile === undefined)
    throw new StartError(
      `catalog.source is topic, and ${setting} is not set: write the output of \`sluice catalog key\` into a file that only Sluice may read, and name it there. All processes need the same file.`,
    )
  let text: string
  try {
    text = readFileSync(keysFile, 'utf8')
  } catch (cause) {
    throw new StartError(`${setting}: ${keysFile} can not be read (${messageOf(cause)})`, { cause })
  }
  const read = readKeys(text)
  if (!read.ok) throw new StartError(`${setting}: ${keysFile} can not be used: ${read.problem}.`)
  return read.keys
}
