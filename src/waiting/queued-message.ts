import { headerText, type OriginPlace, parseOrigin, type ReceivedHeaders } from '../message/record-headers.ts'
import { queuedHeader } from './marks.ts'
import type { QueueClass } from './owners.ts'

/** A message for a destination, and the record from which its delivery is made. */
export type SourcedMessage = {
  readonly destinationId: string
  readonly messageId: string
  readonly source: OriginPlace
}

/** A message in its queue. Its source is the record that is settled because the message is in the queue. */
export type QueuedMessage = SourcedMessage & {
  /** The record that first contained the message. */
  readonly origin: OriginPlace
  /** True if a replay has asked for the message. */
  readonly isReplayed: boolean
}

/** The header of a record of `waiting` that names its source, if the source isn't its origin. */
const sourceHeader = 'queued-from'

/**
 * Returns the headers of a record of `waiting`: the message's own, its source, and `queued`. They are set one
 * by one, because V8 makes a table of 3 KB for an object that is put together from several.
 */
export function queuedHeaders(
  own: Readonly<Record<string, string>>,
  source: OriginPlace | undefined,
  queued: string,
): Record<string, string> {
  const headers: Record<string, string> = { ...own }
  if (source !== undefined) {
    const text = `${source.topic}/${source.partition}/${source.offset}`
    if (own['origin'] !== text) headers[sourceHeader] = text
  }
  headers[queuedHeader] = queued
  return headers
}

/**
 * Reads the headers of a record of `waiting`. Returns `undefined` if they don't name a message with its
 * source: a replayed message isn't made from its origin.
 */
export function queuedMessage(headers: ReceivedHeaders, queueClass: QueueClass): QueuedMessage | undefined {
  const origin = parseOrigin(headerText(headers, 'origin') ?? '')
  const destinationId = headerText(headers, 'destination-id')
  const messageId = headerText(headers, 'message-id')
  const from = headerText(headers, sourceHeader)
  const made = queueClass === 'backfill' ? undefined : origin
  const source = from === undefined ? made : parseOrigin(from)
  if (origin === undefined || source === undefined || destinationId === undefined || messageId === undefined)
    return undefined
  return { destinationId, messageId, origin, source, isReplayed: queueClass === 'backfill' }
}
