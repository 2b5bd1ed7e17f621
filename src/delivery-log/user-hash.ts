import { Hmac } from '../delivery/hmac.ts'
import { userHashBytes } from './log-record.ts'

/** Returns the keyed hash of a text in UTF-8, as a text with one character for each byte of the hash. */
export type KeyedHash = (text: Buffer) => string

/** The hash of a user's id. */
export type UserHash = KeyedHash

const roomBytes = 64 + 4_096

/**
 * Creates a function that hashes users' ids in UTF-8. A hash is the first 48 bits of HMAC-SHA256 with the
 * key. Without the key, nobody can find out to which user a hash belongs, or test whether it belongs to a
 * given user. If an id is longer than 4,096 bytes, only its first 4,096 bytes are hashed.
 */
export function createUserHash(key: string): UserHash {
  return keyedHash(key, '')
}

/**
 * Creates a function that hashes values of messages, as `createUserHash` hashes users. The hash of a value
 * isn't that of a user with the same id.
 */
export function createValueHash(key: string): KeyedHash {
  return keyedHash(key, 'value\0')
}

function keyedHash(key: string, prefix: string): KeyedHash {
  const hmac = new Hmac('sha256', Buffer.from(key, 'utf8'), 'binary')
  const room = Buffer.alloc(roomBytes)
  const ahead = Buffer.from(prefix)
  return (text) => {
    const from = 64 + ahead.copy(room, 64)
    const length = text.copy(room, from, 0, roomBytes - from)
    return hmac.of(room, 64, ahead.length + length).slice(0, userHashBytes)
  }
}

/** Returns the hash of a text as 12 hex digits, which is the form of `LogRecord.user`. */
export function hexOfHash(hash: KeyedHash, text: string): string {
  return Buffer.from(hash(Buffer.from(text, 'utf8')), 'latin1').toString('hex')
}
