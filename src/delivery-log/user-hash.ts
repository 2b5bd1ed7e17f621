import { Hmac } from '../delivery/hmac.ts'
import { userHashBytes } from './log-record.ts'

/** Returns the keyed hash of a user's id, as a text with one character for each byte of the hash. */
export type UserHash = (user: Buffer) => string

const roomBytes = 64 + 4_096

/**
 * Creates a function that hashes users' ids in UTF-8. A hash is the first 48 bits of HMAC-SHA256 with the
 * key. Without the key, nobody can find out to which user a hash belongs, or test whether it belongs to a
 * given user. If an id is longer than 4,096 bytes, only its first 4,096 bytes are hashed.
 */
export function createUserHash(key: string): UserHash {
  const hmac = new Hmac('sha256', Buffer.from(key, 'utf8'), 'binary')
  const room = Buffer.alloc(roomBytes)
  return (user) => {
    const length = user.copy(room, 64, 0, roomBytes - 64)
    return hmac.of(room, 64, length).slice(0, userHashBytes)
  }
}

/** Returns the hash of a user as 12 hex digits, which is the form of `LogRecord.user`. */
export function hexOfUser(hash: UserHash, userId: string): string {
  return Buffer.from(hash(Buffer.from(userId, 'utf8')), 'latin1').toString('hex')
}
