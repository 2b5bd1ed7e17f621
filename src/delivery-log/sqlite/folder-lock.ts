import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** The message of the error of `lockFolder` if another process has the lock. */
export const folderInUse = 'another process writes it'

/** How long `lockFolder` waits for the lock: a process that is being replaced may still be stopping. */
const patienceMs = 3_000
const sqliteBusy = 5

/**
 * Locks a folder of the index until the result is closed, or until the process ends. Two processes that write
 * to the same folder would add each row twice. Throws if another process has the lock.
 */
export function lockFolder(folder: string): DatabaseSync {
  const lock = new DatabaseSync(join(folder, 'lock'), { timeout: patienceMs })
  try {
    lock.exec('BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock.close()
    const isBusy = error instanceof Error && 'errcode' in error && error.errcode === sqliteBusy
    throw isBusy ? new Error(folderInUse, { cause: error }) : error
  }
}
