import { hash } from 'node:crypto'
import { formatTimestamp } from '../message/timestamp.ts'
import type { PropertyState, PropertySubject } from './property-state.ts'
import type { DeletionFloor, DeletionSubject } from './state-record.ts'
import { formatVersion } from './version.ts'

/**
 * A message that is made here. `body` is canonical: equal to `JSON.stringify(JSON.parse(body))`. Names that
 * producers chose are only ever written as JSON: no object is made of them, so that `__proto__` is a name
 * like any other.
 */
export type MadeMessage = { messageId: string; body: Buffer }

/**
 * The Identify that tells receivers of a state. The same value of the same user has the same `messageId`,
 * always.
 */
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

/** A `delete` of what one source sent. */
export type MadeDelete = MadeMessage & { readonly sourceId: string }

/** Base64url of 72 bits: with the longest `requestId`, the id is as long as a `messageId` may be. */
const sourceMarkCharacters = 12

/**
 * The message that tells receivers of a deletion request, for one of its sources. The same request has the
 * same `messageId` for the same source, always, and another one for each other source: `delete-REQUEST-` and
 * twelve characters that stand for the source.
 */
export function deleteOf(
  { userId, sourceId }: Pick<DeletionSubject, 'userId' | 'sourceId'>,
  { requestId, requestedAtMs }: Pick<DeletionFloor, 'requestId' | 'requestedAtMs'>,
): MadeDelete {
  const source = JSON.stringify(sourceId)
  // Of its JSON: two that differ in lone surrogates alone would have the same bytes.
  const mark = hash('sha256', source, 'base64url').slice(0, sourceMarkCharacters)
  const messageId = `delete-${requestId}-${mark}`
  const body = Buffer.from(
    `{"type":"delete","messageId":${JSON.stringify(messageId)},"userId":${JSON.stringify(userId)},` +
      `"timestamp":"${timestampOf(requestedAtMs)}","context":{"sourceId":${source}}}`,
  )
  return { sourceId, messageId, body }
}

/** Times are checked where they come in; what another program wrote into the state may still be none. */
function timestampOf(atMs: number): string {
  return formatTimestamp(atMs) ?? '1970-01-01T00:00:00.000Z'
}
