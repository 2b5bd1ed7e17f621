import { lstatSync, mkdirSync, mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import type { Config } from '../../config/schema.ts'
import { StartError } from './start-error.ts'

/** The permissions to write a folder that its group and all other users have. */
const othersMayWrite = 0o022

/** Returns the folder for the states of this topic prefix and group, and its parent folder. */
export function stateFolderPath(
  { state, kafka }: Config,
  temporaryFolder = tmpdir(),
): { readonly parent: string; readonly folder: string } {
  const parent = state.folder ?? join(temporaryFolder, 'sluice-state')
  return { parent, folder: join(parent, encodeURIComponent(`${kafka.topicPrefix}${kafka.groupId}`)) }
}

/**
 * Returns the folder in which the states for this topic prefix and group are stored. Creates the folder if it
 * doesn't exist. Other installations may have their folders in the same parent folder. Without a setting, the
 * parent folder is `sluice-state` in `temporaryFolder`.
 */
export function stateFolder(config: Config, temporaryFolder = tmpdir()): string {
  const { state } = config
  const { parent, folder } = stateFolderPath(config, temporaryFolder)
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    // A folder is created as a trial, because an existing folder may be on a full or read-only disk, or may
    // belong to another user.
    rmdirSync(mkdtempSync(join(folder, 'trial-')))
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause)
    throw new StartError(
      `The state can not be kept in ${folder} (${code}): set SLUICE_STATE_FOLDER to a folder that this user may write to.`,
      { cause },
    )
  }
  if (state.folder === undefined) refuseFolderOfOthers(parent)
  return folder
}

/**
 * Every user of the machine may create folders in the temporary folder. If another user has created our
 * folder there beforehand, that user could read and change the states.
 */
function refuseFolderOfOthers(path: string): void {
  const found = lstatSync(path)
  // Windows has no user ids. There, each user has a temporary folder of their own.
  const uid = process.getuid?.()
  if (uid === undefined) return
  if (found.isDirectory() && found.uid === uid && (found.mode & othersMayWrite) === 0) return
  throw new StartError(
    `The state is not kept in ${path}, because another user could change it there: set SLUICE_STATE_FOLDER to a folder that only this user may write to.`,
  )
}
