import { Hmac } from '../delivery/hmac.ts'
import { userHashBytes } from './log-record.ts'

/** A keyed hash of a user's id, one byte a character. */
export type UserHash = (user: Buffer) => string

const roomBytes = 64 + 4_096

/**
 * The first 48 bits of HMAC-SHA256 of the user's id, in UTF-8. Who doesn't have the key can't tell whose it
 * is, nor try out whether it is somebody's. Of an id that is longer than Kafka's keys should be, 4,096 bytes
 * count.
 */
export function createUserHash(key: string): UserHash {
  const hmac = new Hmac('sha256', Buffer.from(key, 'utf8'), 'binary')
  const room = Buffer.alloc(roomBytes)
  return (user) => {
    const length = user.copy(room, 64, 0, roomBytes - 64)
    return hmac.of(room, 64, length).slice(0, userHashBytes)
  }
}

/** As records that were read have it: 12 hex digits. */
export function hexOfUser(hash: UserHash, userId: string): string {
  return Buffer.from(hash(Buffer.from(userId, 'utf8')), 'latin1').toString('hex')
}
