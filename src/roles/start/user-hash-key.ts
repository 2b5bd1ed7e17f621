import { readFileSync } from 'node:fs'
import type { Config } from '../../config/schema.ts'
import {
  createUserHash,
  createValueHash,
  type KeyedHash,
  type UserHash,
} from '../../delivery-log/user-hash.ts'
import { StartError } from './start-error.ts'

/**
 * Returns the function that hashes user ids with the configured key. Returns `undefined` if no key is
 * configured. Throws if the file with the key can't be used.
 */
export function userHashOf({ attempts }: Config): UserHash | undefined {
  const key = attempts.userKey ?? keyInFile(attempts.userKeyFile)
  return key === undefined ? undefined : createUserHash(key)
}

/** Returns the function that hashes values of messages with the same key. */
export function valueHashOf({ attempts }: Config): KeyedHash | undefined {
  const key = attempts.userKey ?? keyInFile(attempts.userKeyFile)
  return key === undefined ? undefined : createValueHash(key)
}

const minKeyCharacters = 16

function keyInFile(path: string | undefined): string | undefined {
  if (path === undefined) return undefined
  const refuse = (why: string, cause?: unknown): never => {
    throw new StartError(`attempts.userKeyFile (SLUICE_ATTEMPTS_USER_KEY_FILE): ${path} ${why}`, { cause })
  }
  let key = ''
  try {
    key = readFileSync(path, 'utf8').trim()
  } catch (cause) {
    return refuse(`can not be read (${cause instanceof Error ? cause.message : String(cause)})`, cause)
  }
  return key.length >= minKeyCharacters ? key : refuse(`has fewer than ${minKeyCharacters} characters`)
}
