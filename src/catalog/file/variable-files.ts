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
  maxTotalBytes: 64 * 2 ** 20,
}

/** Returns a text that changes with each edit of a variable. */
export function variablesSignature(folder: string): Promise<string> {
  return folderSignature(folder, ofVariables)
}

export type ReadVariables =
  | {
      ok: true
      variables: Variables
      /** Why files can't be used, by the names of their variables, which are empty. */
      faults: ReadonlyMap<string, Fault>
      digest: string
    }
  /** `isLasting`: true if the files stay unusable until they are edited. */
  | { ok: false; fault: Fault; isLasting: boolean }

/**
 * Reads all variables of a folder, as one version of the folder has them. The line break at the end of a file
 * doesn't belong to the value.
 */
export async function readVariables(folder: string): Promise<ReadVariables> {
  const read = await readFiles(folder, ofVariables)
  if (!read.ok) return read
  const { files, digest } = read
  const variables = Object.fromEntries(files.map(({ name, text }) => [name, text.replace(/\r?\n$/, '')]))
  const faults = new Map(files.flatMap(({ name, fault }) => (fault === undefined ? [] : [[name, fault]])))
  return { ok: true, variables, faults, digest }
}
