import { randomBytes } from 'node:crypto'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { Breath } from '../../async/breath.ts'
import { errorCode } from './file-signature.ts'
import type { CatalogOutline } from '../outline.ts'
import { isRecord, isString } from '../plain-data.ts'

/**
 * Reads the outline that `writeOutline` has written. Returns `undefined` if there is no file, and a text that
 * says what is wrong if the file can't be used.
 */
export async function readOutline(path: string): Promise<CatalogOutline | string | undefined> {
  let data: unknown
  try {
    data = JSON.parse(await readFile(path, 'utf8'))
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    return errorCode(error) ?? 'it is not JSON'
  }
  if (!isRecord(data)) return 'it is not an outline of a catalog'
  const { version, sources, destinations } = data
  if (!isString(version) || !isStates(sources) || !isStates(destinations))
    return 'it is not an outline of a catalog'
  return {
    version,
    sources: new Map(Object.entries(sources)),
    destinations: new Map(Object.entries(destinations)),
  }
}

/**
 * Writes an outline. Several processes may write the same file at the same time: each moves a finished file
 * over it. Rejects if the file can't be written.
 */
export async function writeOutline(path: string, outline: CatalogOutline): Promise<void> {
  const { version, sources, destinations } = outline
  const breath = new Breath()
  // The text of a large outline would take the process away from its work for too long.
  const textOf = async (states: ReadonlyMap<string, string>): Promise<string> => {
    const pairs: string[] = []
    for (const [id, state] of states) {
      pairs.push(`${JSON.stringify(id)}:${JSON.stringify(state)}`)
      await breath.take()
    }
    return `{${pairs.join(',')}}`
  }
  const text = `{"version":${JSON.stringify(version)},"sources":${await textOf(sources)},"destinations":${await textOf(destinations)}}`
  const part = `${path}.${randomBytes(6).toString('hex')}.part`
  try {
    await writeFile(part, text, { mode: 0o600, flush: true })
    await rename(part, path)
  } catch (error) {
    await rm(part, { force: true }).catch(() => undefined)
    throw error
  }
}

function isStates(value: unknown): value is Readonly<Record<string, string>> {
  return isRecord(value) && Object.values(value).every(isString)
}
