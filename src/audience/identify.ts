import { hash } from 'node:crypto'
import { formatTimestamp } from '../message/timestamp.ts'
import type { DeletionFloor, PropertyState, PropertySubject } from './state-record.ts'
import { formatVersion } from './version.ts'

/**
 * A message that is made here. `body` is canonical: equal to `JSON.stringify(JSON.parse(body))`. Names that producers chose
 * are only ever written as JSON: no object is made of them, so that `__proto__` is a name like any other.
 */
export type MadeMessage = { messageId: string; body: Buffer }

/** The Identify that tells receivers of a state. The same value of the same user has the same `messageId`, always. */
export function identifyOf(
  { userId, spaceId, property }: PropertySubject,
  state: PropertyState,
): MadeMessage {
  const { kind, id, value, since } = state
  const [user, space, key] = [JSON.stringify(userId), JSON.stringify(spaceId), JSON.stringify(property)]
  const digest = hash('sha256', `[${user},${space},${key}]${formatVersion(since)}`, 'base64url')
  const messageId = `personas-${digest}`
  const body = Buffer.from(
    `{"type":"identify","version":1,"messageId":"${messageId}","userId":${user},` +
      `"timestamp":"${timestampOf(since.atMs)}","traits":{${key}:${value}},"context":{"personas":` +
      `{"computation_class":"${kind}","computation_id":${JSON.stringify(id)},"computation_key":${key},` +
      `"namespace":${space},"space_id":${space}}}}`,
  )
  return { messageId, body }
}

/** The message that tells receivers of a deletion request. */
export function deleteOf(
  userId: string,
  { requestId, requestedAtMs }: Pick<DeletionFloor, 'requestId' | 'requestedAtMs'>,
): MadeMessage {
  const messageId = `delete-${requestId}`
  const body = Buffer.from(
    `{"type":"delete","messageId":${JSON.stringify(messageId)},"userId":${JSON.stringify(userId)},` +
      `"timestamp":"${timestampOf(requestedAtMs)}","context":{}}`,
  )
  return { messageId, body }
}

/** Times are checked where they come in; what another program wrote into the state may still be none. */
function timestampOf(atMs: number): string {
  return formatTimestamp(atMs) ?? '1970-01-01T00:00:00.000Z'
}
