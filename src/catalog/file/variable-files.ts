import { createHash } from 'node:crypto'
import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Fault, faultOf } from '../fault.ts'
import { errorCode, signatureFrom } from './file-signature.ts'
import { variableName, type Variables } from '../variables.ts'

// A folder with a file for each variable of the catalog, as Kubernetes mounts a Secret. Kubernetes puts the
// files into a folder of their own for each version, and moves the link `..data` to the newest one. Each name
// in the folder is a link to `..data/NAME`.

/** The link that Kubernetes moves. */
const versionLink = '..data'
/** Limit on the bytes of one variable. */
const maxBytes = 64 * 1024
/** Limit on the variables of a folder. */
const maxFiles = 10_000

/**
 * Returns a text that changes with each edit of a variable. If Kubernetes keeps the folder, only its link is
 * read, however many variables there are.
 */
export async function variablesSignature(folder: string): Promise<string> {
  try {
    const link = await stat(join(folder, versionLink), { bigint: true }).catch(() => undefined)
    if (link !== undefined) return signatureFrom(link)
    const names = await namesIn(folder)
    const all = names.slice(0, maxFiles).map(async (name) => {
      const stats = await stat(join(folder, name), { bigint: true })
      return `${name} ${signatureFrom(stats)}`
    })
    return (await Promise.all(all)).join('\n')
  } catch (error) {
    const code = errorCode(error)
    if (code === undefined) throw error
    return code
  }
}

export type ReadVariables =
  | { ok: true; variables: Variables; digest: string }
  /** `isLasting`: true if the files stay unusable until they are edited. */
  | { ok: false; fault: Fault; isLasting: boolean }

/**
 * Reads all variables of a folder, as one version of the folder has them. The line break at the end of a file
 * doesn't belong to the value.
 */
export async function readVariables(folder: string): Promise<ReadVariables> {
  let path = folder
  try {
    const base = await realpath(join(folder, versionLink)).catch(() => folder)
    const names = await namesIn(base)
    if (names.length > maxFiles) {
      const fault = faultOf(folder, `has more than ${maxFiles} variables`, 'keep fewer')
      return { ok: false, fault, isLasting: true }
    }
    const variables: Record<string, string> = {}
    const hash = createHash('sha256')
    for (const name of names) {
      path = join(base, name)
      const { size } = await stat(path)
      if (size > maxBytes) {
        const fault = faultOf(path, 'is larger than 64 KiB', 'write one value into it')
        return { ok: false, fault, isLasting: true }
      }
      const value = utf8.decode(await readFile(path)).replace(/\r?\n$/, '')
      variables[name] = value
      hash.update(JSON.stringify([name, value]))
    }
    return { ok: true, variables, digest: hash.digest('hex') }
  } catch (error) {
    if (error instanceof TypeError)
      return { ok: false, fault: faultOf(path, 'is not UTF-8', 'save it as UTF-8'), isLasting: true }
    const code = errorCode(error)
    if (code === undefined) throw error
    const advice =
      code === 'ENOENT' && path === folder
        ? 'create it, or name another folder as catalog.variablesFolder'
        : 'check the file and its permissions'
    return { ok: false, fault: faultOf(path, `cannot be read (${code})`, advice), isLasting: false }
  }
}

async function namesIn(folder: string): Promise<readonly string[]> {
  return (await readdir(folder)).filter((name) => variableName.test(name)).toSorted()
}

const utf8 = new TextDecoder('utf-8', { fatal: true })
