import { createHash } from 'node:crypto'
import { open, stat } from 'node:fs/promises'
import { type Fault, faultOf } from '../fault.ts'
import { errorCode, signatureFrom } from './file-signature.ts'
import { type FolderKind, folderSignature, readFiles, type TextFile } from './folder-files.ts'
import { readVariables, variablesSignature } from './variable-files.ts'
import type { Variables } from '../variables.ts'

/** The files that make a catalog. */
export type CatalogPlace = {
  /** A file, or a folder of files that each have a part of the catalog. */
  readonly path: string
  /** The folder with a file for each variable. `undefined`: variables come from the environment only. */
  readonly variablesFolder: string | undefined
  /** The variables of the environment. A file takes precedence over them. */
  readonly variables: Variables
}

/**
 * One version of the files. `digest` is the same for two versions only if all of their texts are the same.
 */
export type Snapshot = {
  readonly signature: string
  /** The text of the file. Empty for a folder. */
  readonly text: string
  /** The files of a folder. `undefined`: the catalog is one file. */
  readonly files?: readonly TextFile[] | undefined
  readonly digest: string
  readonly variables: Variables
  /** Why files of variables can't be used, by the names of the variables. */
  readonly variableFaults?: ReadonlyMap<string, Fault> | undefined
}

export type Unreadable = {
  readonly signature: string
  readonly fault: Fault
  /** True if a file will stay unreadable until it is edited. */
  readonly isLasting: boolean
}

/** The limit on a file of JSON. `parseCatalog` has a lower limit for YAML. */
const maxBytes = 64 * 1024 * 1024
/** A folder with a file for each destination, or for some of them. */
const ofParts: FolderKind = {
  names: /^[^.].*\.(?:ya?ml|json)$/,
  what: 'files',
  setting: 'catalog.file',
  maxFiles: 20_000,
  maxBytes: 1024 * 1024,
  tooLarge: 'write several files',
  maxTotalBytes: maxBytes,
}

/** Returns a text that changes with every edit of the files. */
export async function signatureOf({ path, variablesFolder }: CatalogPlace): Promise<string> {
  const ofFile = await fileSignature(path)
  return variablesFolder === undefined ? ofFile : `${ofFile}\n${await variablesSignature(variablesFolder)}`
}

async function fileSignature(path: string): Promise<string> {
  try {
    const stats = await stat(path, { bigint: true })
    return stats.isDirectory() ? await folderSignature(path, ofParts) : signatureFrom(stats)
  } catch (error) {
    const code = errorCode(error)
    if (code === undefined) throw error
    return code
  }
}

/**
 * Reads the files. Returns the fault if one can't be read. If a file changes while it is read, the signature
 * in the result isn't the one from before.
 */
export async function takeSnapshot(
  place: CatalogPlace,
): Promise<({ ok: true } & Snapshot) | ({ ok: false } & Unreadable)> {
  const { variablesFolder, variables } = place
  const before = variablesFolder === undefined ? '' : `\n${await variablesSignature(variablesFolder)}`
  const file = await readFileWhole(place.path)
  if (!file.ok) return { ...file, signature: file.signature + before }
  if (variablesFolder === undefined) return { ...file, variables }
  const read = await readVariables(variablesFolder)
  const after = `\n${await variablesSignature(variablesFolder)}`
  const signature = before === after ? file.signature + after : 'changing'
  if (!read.ok) return { ...read, signature }
  return {
    ...file,
    signature,
    digest: `${file.digest} ${read.digest}`,
    variables: { ...variables, ...read.variables },
    variableFaults: read.faults,
  }
}

/**
 * Reads the whole catalog file. If the file changes while it is read, the signature in the result is
 * `changing`.
 */
async function readFileWhole(
  path: string,
): Promise<({ ok: true } & Omit<Snapshot, 'variables'>) | ({ ok: false } & Unreadable)> {
  let signature = 'none'
  const refuse = (problem: string, advice: string, isLasting = true) => ({
    ok: false as const,
    signature,
    fault: faultOf(path, problem, advice),
    isLasting,
  })
  try {
    const stats = await stat(path, { bigint: true })
    signature = signatureFrom(stats)
    if (stats.isDirectory()) return await readParts(path)
    if (!stats.isFile()) return refuse('is not a file', 'name a file or a folder')
    if (stats.size > maxBytes) return refuse('is larger than 64 MiB', 'write less')
    // The file is opened only once. So if a symbolic link is replaced at this time, the content isn't a mix
    // of two files.
    await using handle = await open(path)
    const bytes = await handle.readFile()
    const isSame = signatureFrom(await handle.stat({ bigint: true })) === signature
    const digest = createHash('sha256').update(bytes).digest('hex')
    return { ok: true, signature: isSame ? signature : 'changing', text: utf8.decode(bytes), digest }
  } catch (error) {
    if (error instanceof TypeError) return refuse('is not UTF-8', 'save it as UTF-8')
    const code = errorCode(error)
    if (code === undefined) throw error
    if (signature === 'none') signature = code
    return refuse(
      `cannot be read (${code})`,
      code === 'ENOENT' ? 'write it, or name another' : 'check the file',
      false,
    )
  }
}

/** If a file changes while the folder is read, the signature in the result is `changing`. */
async function readParts(
  path: string,
): Promise<({ ok: true } & Omit<Snapshot, 'variables'>) | ({ ok: false } & Unreadable)> {
  const before = await folderSignature(path, ofParts)
  const read = await readFiles(path, ofParts)
  const signature = (await folderSignature(path, ofParts)) === before ? before : 'changing'
  if (!read.ok) return { ...read, signature }
  const { files, digest } = read
  if (files.length > 0) return { ok: true, signature, text: '', files, digest }
  const fault = faultOf(path, 'has no file that ends with .yaml, .yml or .json', 'write a file into it')
  return { ok: false, fault, signature, isLasting: true }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })
