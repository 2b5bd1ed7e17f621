import type { Fault } from '../fault.ts'
import { variableName, type Variables } from '../variables.ts'
import { type FolderKind, folderSignature, readFiles } from './folder-files.ts'

/** A folder with a file for each variable of the catalog. */
const ofVariables: FolderKind = {
  names: variableName,
  what: 'variables',
  setting: 'catalog.variablesFolder',
  maxFiles: 10_000,
  maxBytes: 64 * 1_024,
  tooLarge: 'write one value into it',
}

/** Returns a text that changes with each edit of a variable. */
export function variablesSignature(folder: string): Promise<string> {
  return folderSignature(folder, ofVariables)
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
  const read = await readFiles(folder, ofVariables)
  if (!read.ok) return read
  const fault = read.files.find((file) => file.fault !== undefined)?.fault
  if (fault !== undefined) return { ok: false, fault, isLasting: true }
  const variables = read.files.map(({ name, text }) => [name, text.replace(/\r?\n$/, '')])
  return { ok: true, variables: Object.fromEntries(variables), digest: read.digest }
}
