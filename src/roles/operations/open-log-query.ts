import { existsSync, readFileSync } from 'node:fs'
import type { Config } from '../../config/schema.ts'
import type { LogQuery } from '../../delivery-log/log-query.ts'
import { createQueryClient } from '../../delivery-log/query-client.ts'
import { openIndexQuery } from '../../delivery-log/sqlite/index-threads.ts'
import { hexOfHash } from '../../delivery-log/user-hash.ts'
import { openClickHouse } from './log-clickhouse.ts'
import { indexFolder } from './log-index.ts'
import { StartError } from '../start/start-error.ts'
import { userHashOf, valueHashOf } from '../start/user-hash-key.ts'

/**
 * Opens the delivery log for queries. Asks over HTTP if `index.url` is set. If not, asks ClickHouse if it is
 * configured. Otherwise reads the files in `index.folder`. The caller must close the result.
 */
export async function openLogQuery(config: Config): Promise<LogQuery> {
  const { url } = config.index
  if (url !== undefined) return createQueryClient(url, indexToken(config))
  const clickHouse = await openClickHouse(config)
  if (clickHouse !== undefined) return clickHouse.query(() => -1)
  const folder = indexFolder(config)
  if (!existsSync(folder)) {
    throw new StartError(
      `There is no index of the delivery log in ${folder}: run \`sluice log serve\`, and set index.folder (SLUICE_INDEX_FOLDER) to its folder, or index.url (SLUICE_INDEX_URL) to where it answers.`,
    )
  }
  return openIndexQuery({ folder, behindMs: () => -1 })
}

/**
 * Returns the hash that the delivery log has in place of a user id. Returns `undefined` if no key is
 * configured.
 */
export function hashedUser(config: Config, userId: string): string | undefined {
  const hash = userHashOf(config)
  return hash === undefined ? undefined : hexOfHash(hash, userId)
}

/**
 * Returns the hash that the delivery log has in place of an indexed value, as `hashedUser` does for users.
 */
export function hashedValue(config: Config, value: string): string | undefined {
  const hash = valueHashOf(config)
  return hash === undefined ? undefined : hexOfHash(hash, value)
}

/** Returns the token that clients of an index must send. Returns `undefined` if no token is configured. */
export function indexToken({ index }: Config): string | undefined {
  if (index.tokenFile === undefined) return index.token
  try {
    const token = readFileSync(index.tokenFile, 'utf8').trim()
    if (token !== '') return token
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new StartError(`index.tokenFile (SLUICE_INDEX_TOKEN_FILE): ${why}`, { cause })
  }
  throw new StartError(`index.tokenFile (SLUICE_INDEX_TOKEN_FILE): ${index.tokenFile} is empty`)
}
