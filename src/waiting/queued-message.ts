import { headerText, type OriginPlace, parseOrigin, type ReceivedHeaders } from '../message/record-headers.ts'
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

/** Returns the headers that name the source of a message, beside its own headers. */
export function sourceHeaders(
  headers: Readonly<Record<string, string>>,
  source: OriginPlace | undefined,
): Record<string, string> {
  if (source === undefined) return {}
  const text = `${source.topic}/${source.partition}/${source.offset}`
  return headers['origin'] === text ? {} : { [sourceHeader]: text }
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
