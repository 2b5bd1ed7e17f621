import { enter } from '../message/enter.ts'
import { type Entered, madeMessageId } from '../message/entered.ts'
import { type OriginPlace, sourceIdOf } from '../message/record-headers.ts'
import { encodeRetryState } from '../retry/retry-state.ts'
import { type Route, route } from '../routing/route.ts'
import {
  type Choice,
  type Chosen,
  isInTime,
  type LeftOutReason,
  leaveOut,
  notAsked,
  type ReplayDestination,
  type SourceRecord,
} from './chosen.ts'
import type { OutboundRecord } from '../message/records.ts'

/**
 * Decides about a record of `events`. The record goes to the selection's destination if the present catalog
 * connects this destination to the record's source. The destination gets the same body with the same
 * `messageId` that the other destinations got. The record's `value` must be plain JSON.
 */
export function chooseEvent(record: SourceRecord, choice: Choice): Chosen {
  const { selection, topics, catalog, limits } = choice
  const destinationId = selection.destinationId ?? ''
  const sourceId = sourceIdOf(record.headers) ?? ''
  const isOfSource = selection.sourceId === undefined || selection.sourceId === sourceId
  if (!isOfSource || !isInTime(selection, record.timestampMs)) return notAsked
  const { sources, destinations } = catalog()
  const destination = destinations.get(destinationId)
  if (destination === undefined) return leaveOut('destination_removed')
  if (!destination.sources.includes(sourceId)) return notAsked
  const { partition, offset, timestampMs, value } = record
  const origin = { topic: topics.events, partition, offset }
  if (!mayHaveId(record, origin, selection.messageId)) return notAsked
  if (record.unreadable !== undefined) return leaveOut('unreadable')
  if (sources.get(sourceId)?.enabled !== true) return leaveOut('source_off')
  if (destination.state === 'auto_paused') return leaveOut('auto_paused')
  const entered = enter(value, { ...origin, timestampMs }, limits)
  if (!entered.ok) return leaveOut('unreadable')
  const { message } = entered
  if (selection.messageId !== undefined && message.messageId !== selection.messageId) return notAsked
  const unrouted = leftOutBy(route(message, [destination]))
  if (unrouted !== undefined) return leaveOut(unrouted)
  const event = { record, sourceId, origin, message, firstSeenMs: timestampMs }
  return { kind: 'send', records: [deliveryOf(event, destination, choice)] }
}

/**
 * Returns why a message isn't sent to a destination. `route`: how the present catalog routes the message to
 * this destination alone. Returns `undefined` if it is sent.
 */
export function leftOutBy({
  skipped: [skipped],
  failed,
}: Route<ReplayDestination>): LeftOutReason | undefined {
  if (failed.length > 0) return 'filter_failed'
  if (skipped === undefined) return undefined
  return skipped.reason === 'destination_off' ? 'destination_off' : 'filtered'
}

/** A message of `events`, and the record that a replay reads it from. */
export type ReplayedEvent = {
  readonly record: SourceRecord
  readonly sourceId: string
  readonly origin: OriginPlace
  readonly message: Entered
  /** The time at which the message came first, in epoch milliseconds. */
  readonly firstSeenMs: number
}

/** Returns the record of `replays` by which a worker delivers an event to a destination. */
export function deliveryOf(
  { record: { partition, key }, sourceId, origin, message, firstSeenMs }: ReplayedEvent,
  { id }: ReplayDestination,
  { topics, jobId }: Choice,
): OutboundRecord {
  const headers = encodeRetryState({
    sourceId,
    destinationId: id,
    messageId: message.messageId,
    kind: message.type,
    nextRung: 0,
    attempts: 0,
    // The original time is kept, so that the message is dropped if its user was deleted since then.
    firstSeenMs,
    expiresAtMs: 0,
    failedHooks: [],
    notBeforeMs: new Map(),
    lastOutcome: '',
    origin,
    replayJob: jobId,
  })
  return { topic: topics.replays, partition, key, value: message.body, headers }
}

const backslash = 0x5c

/**
 * Returns false if a message certainly doesn't have the `messageId` of the selection. For most messages, this
 * is known without parsing them.
 */
function mayHaveId(
  { value, timestampMs }: SourceRecord,
  origin: { topic: string; partition: number; offset: number },
  messageId: string | undefined,
): boolean {
  if (messageId === undefined || madeMessageId({ ...origin, timestampMs }) === messageId) return true
  if (value === null) return false
  // JSON may spell each character of the id by an escape, and some characters have to be spelled so.
  return value.includes(messageId) || value.includes(backslash)
}
