import { hash } from 'node:crypto'
import { formatTimestamp } from '../../message/timestamp.ts'
import type { DeletionFloor, DeletionStateKey } from './state-record.ts'
import { formatVersion, type PropertyState, type PropertyStateKey } from './version.ts'

/**
 * A message that Sluice makes. `body` is canonical, which means that it equals
 * `JSON.stringify(JSON.parse(body))`. Names that producers chose are written directly as JSON. They never
 * become the keys of a JavaScript object, so the name `__proto__` does no harm.
 */
export type MadeMessage = { messageId: string; body: Buffer }

/**
 * Builds the Identify that sends a state to receivers. The `messageId` depends only on the user, the space,
 * the property and `since`. So repeated messages of the same value have the same `messageId`.
 */
export function identifyOf(
  { userId, spaceId, property }: PropertyStateKey,
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

/** A `delete` message for all data that one source sent about a user. */
export type MadeDelete = MadeMessage & { readonly sourceId: string }

/**
 * How many characters of a `messageId` stand for the source: 72 bits as base64url. With the longest
 * `requestId`, the `messageId` is exactly as long as is allowed.
 */
const sourceMarkCharacters = 12

/**
 * Builds the `delete` that sends a deletion request to receivers, for one of the request's sources. The
 * `messageId` is `delete-REQUEST-` and twelve characters that stand for the source. So the same request and
 * source always get the same `messageId`, and another source gets another one.
 */
export function deleteOf(
  { userId, sourceId }: Pick<DeletionStateKey, 'userId' | 'sourceId'>,
  { requestId, requestedAtMs }: Pick<DeletionFloor, 'requestId' | 'requestedAtMs'>,
): MadeDelete {
  const source = JSON.stringify(sourceId)
  // The JSON of the id is hashed, and not the id's UTF-8. In UTF-8, two ids that differ only in lone
  // surrogates have the same bytes.
  const mark = hash('sha256', source, 'base64url').slice(0, sourceMarkCharacters)
  const messageId = `delete-${requestId}-${mark}`
  const body = Buffer.from(
    `{"type":"delete","messageId":${JSON.stringify(messageId)},"userId":${JSON.stringify(userId)},` +
      `"timestamp":"${timestampOf(requestedAtMs)}","context":{"sourceId":${source}}}`,
  )
  return { sourceId, messageId, body }
}

/**
 * Formats a time. The times in changes are checked when they arrive, but a state that another program wrote
 * may have an invalid time.
 */
function timestampOf(atMs: number): string {
  return formatTimestamp(atMs) ?? '1970-01-01T00:00:00.000Z'
}
