import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { workshopFolder } from './running.ts'

/** The files with secrets that `sluice up` makes once, and uses again at each start. */
export const keptFiles = {
  /** The key that signs the records of the catalog's topic, and seals the secrets in them. */
  catalogKeys: join(workshopFolder, 'catalog-keys'),
  /** The key with which the delivery log hashes the ids of users. */
  userKey: join(workshopFolder, 'user-key'),
  /** The token of the admin API. */
  adminToken: join(workshopFolder, 'admin-token'),
} as const

/** Returns the text of a file. If there is none, writes the text that `make` returns, for this user alone. */
export function kept(path: string, make: () => string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'ENOENT') throw error
  }
  mkdirSync(dirname(path), { recursive: true })
  const text = make().trim()
  writeFileSync(path, `${text}\n`, { mode: 0o600, flag: 'wx' })
  return text
}
