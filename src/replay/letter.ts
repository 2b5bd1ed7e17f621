import type { DeadReason } from '../message/dead-letter-reasons.ts'
import { enter } from '../message/enter.ts'
import { type MessageKind, messageKinds } from '../message/message-schemas.ts'
import { partitionOf } from '../message/partitioner.ts'
import { headerText, type OriginPlace, parseOrigin, sourceIdOf } from '../message/record-headers.ts'
import { decodeRetryState, encodeRetryState, firstSeenOf } from '../retry/retry-state.ts'
import { route } from '../routing/route.ts'
import { type Choice, type Chosen, isInTime, leaveOut, notAsked, type SourceRecord } from './chosen.ts'
import type { OutboundRecord } from '../message/records.ts'
import { deliveryOf, leftOutBy } from './event.ts'
import { isSelectedLetter } from './selection.ts'

/**
 * Decides about a dead letter. A dead letter of a delivery goes to `replays`, without its number of attempts,
 * its expiry and its failed hooks. The worker treats it like any delivery that comes from a retry topic. The
 * worker doesn't send it if there is a newer value or if its user was deleted. A refused event is entered and
 * routed here, and goes to `replays` too. It doesn't go back to `events`, because others write that topic.
 * Workers would have to believe everybody there who says when a message came first. A refused change of an
 * audience and a refused request for a deletion go back to the topics from which they came, and nothing but
 * their source goes with them.
 */
export function chooseLetter(letter: SourceRecord, choice: Choice): Chosen {
  const { selection } = choice
  const header = (name: string): string | undefined => headerText(letter.headers, name)
  if (!isInTime(selection, letter.timestampMs) || !isSelectedLetter(selection, header)) return notAsked
  if (letter.unreadable !== undefined) return leaveOut('unreadable')
  const { headers, value } = letter
  if (headerText(headers, 'value-omitted') !== undefined) return leaveOut('value_omitted')
  if (headerText(headers, 'destination-id') === undefined) return chooseUndelivered(letter, choice)
  const decoded = decodeRetryState(headers)
  // If the headers of a record could not be read on a retry topic, they can't be read now either.
  if (!decoded.ok || value === null || value.length === 0) return leaveOut('not_replayable')
  const destination = choice.catalog().destinations.get(decoded.state.destinationId)
  if (destination === undefined) return leaveOut('destination_removed')
  if (destination.state === 'off') return leaveOut('destination_off')
  if (destination.state === 'auto_paused') return leaveOut('auto_paused')
  const { property, kind } = decoded.state
  if (header('reason') === filterFailed) {
    // Nobody has decided yet whether the destination gets it.
    const unrouted = isKind(kind) ? leftOutBy(route({ type: kind, body: value }, [destination])) : undefined
    if (unrouted !== undefined) return leaveOut(unrouted)
  }
  // Only the present unit of the user knows newer values. It may be another unit than before, because the
  // number of units may have grown.
  const partition =
    property === undefined ? letter.partition : partitionOf(property.userId, choice.partitions)
  return send(
    { ...letter, partition },
    {
      topic: choice.topics.replays,
      headers: encodeRetryState({
        ...decoded.state,
        nextRung: 0,
        waits: 0,
        attempts: 0,
        expiresAtMs: 0,
        failedHooks: [],
        unsentHooks: [],
        notBeforeMs: new Map(),
        hookContents: undefined,
        lastOutcome: '',
        replayJob: choice.jobId,
        // A new try is made by the mapping that the destination has then.
        mapping: undefined,
      }),
    },
  )
}

const filterFailed: DeadReason = 'filter_failed'

function isKind(kind: string): kind is MessageKind {
  return messageKinds.some((known) => known === kind)
}

function chooseUndelivered(letter: SourceRecord, choice: Choice): Chosen {
  const { topics, catalog } = choice
  const origin = parseOrigin(headerText(letter.headers, 'origin') ?? '')
  const sourceId = sourceIdOf(letter.headers)
  const reason = headerText(letter.headers, 'reason') ?? ''
  switch (origin?.topic) {
    case topics.events:
      return sourceId === undefined
        ? leaveOut('not_replayable')
        : chooseRefusedEvent(letter, { origin, sourceId }, choice)
    case topics.audienceChanges:
      // A part of a sync is useless without the other parts. The next sync sends all of its parts again.
      if (sourceId === undefined || reason.startsWith('sync_')) return leaveOut('not_replayable')
      // A value of a disabled space is kept, so it is replayed.
      return catalog().sources.has(sourceId)
        ? send(letter, { topic: origin.topic, headers: { 'source-id': sourceId } })
        : leaveOut('source_unknown')
    case topics.deletions:
      return send(letter, { topic: origin.topic, headers: {} })
    default:
      // A state of an audience would overwrite newer values, so it isn't replayed. A backfill can send the
      // present values.
      return leaveOut('not_replayable')
  }
}

/**
 * Returns true if the value of a dead letter is the value of a record of `events`, as its producer wrote it.
 */
export function isRefusedEvent({ headers }: SourceRecord, { events }: Choice['topics']): boolean {
  const isRefused = headerText(headers, 'destination-id') === undefined
  return isRefused && parseOrigin(headerText(headers, 'origin') ?? '')?.topic === events
}

/**
 * Decides about an event that was refused, and so never went to a destination. It goes to each destination to
 * which the present catalog routes it. Its `value` must be plain JSON.
 */
function chooseRefusedEvent(
  letter: SourceRecord,
  { origin, sourceId }: { readonly origin: OriginPlace; readonly sourceId: string },
  choice: Choice,
): Chosen {
  const { sources, destinationsBySource } = choice.catalog()
  const source = sources.get(sourceId)
  if (source === undefined) return leaveOut('source_unknown')
  // An event of a disabled source would be dropped, so it is left out.
  if (!source.enabled) return leaveOut('source_off')
  const firstSeenMs = firstSeenOf(letter.headers, letter.timestampMs)
  const entered = enter(letter.value, { ...origin, timestampMs: firstSeenMs }, choice.limits)
  if (!entered.ok) return leaveOut('unreadable')
  const { message } = entered
  const connected = destinationsBySource.get(sourceId) ?? []
  const { to, skipped, failed } = route(message, connected)
  // The dead letter is the only copy for a destination of which it isn't known whether it gets the message.
  if (failed.length > 0) return leaveOut('filter_failed')
  if (to.length > 0) {
    const event = { record: letter, sourceId, origin, message, firstSeenMs }
    return { kind: 'send', records: to.map((destination) => deliveryOf(event, destination, choice)) }
  }
  if (skipped.length === 0) return leaveOut('no_destination')
  const isOff = skipped.every(({ reason }) => reason === 'destination_off')
  return leaveOut(isOff ? 'destination_off' : 'filtered')
}

function send(
  { partition, key, value }: SourceRecord,
  { topic, headers }: Pick<OutboundRecord, 'topic' | 'headers'>,
): Chosen {
  return { kind: 'send', records: [{ topic, partition, key, value, headers }] }
}
