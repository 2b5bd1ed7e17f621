import { partitionOf } from '../message/partitioner.ts'
import { headerText, parseOrigin } from '../message/record-headers.ts'
import { decodeRetryState, encodeRetryState } from '../retry/retry-state.ts'
import {
  type Choice,
  type Chosen,
  isInTime,
  leaveOut,
  notAsked,
  type ReplayedRecord,
  type SourceRecord,
} from './chosen.ts'

/**
 * Decides about a dead letter. A dead letter of a delivery goes to `replays`, without its number of attempts,
 * its expiry and its failed hooks. The worker treats it like any delivery that comes from a retry topic. The
 * worker doesn't send it if there is a newer value or if its user was deleted. A dead letter that never had a
 * destination goes back to the topic from which it came.
 */
export function chooseLetter(letter: SourceRecord, choice: Choice): Chosen {
  const { selection } = choice
  if (!isInTime(selection, letter.timestampMs) || !isAsked(letter, choice)) return notAsked
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
  const { property } = decoded.state
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
        lastOutcome: '',
        replayJob: choice.jobId,
      }),
    },
  )
}

/**
 * Returns true if a record's headers match the selection. A record that can't be read has no headers, so it
 * matches only if the selection has no condition on headers.
 */
function isAsked({ headers }: SourceRecord, { selection }: Choice): boolean {
  const { destinationId, sourceId, reason, messageId } = selection
  const isSo = (wanted: string | undefined, name: string): boolean =>
    wanted === undefined || headerText(headers, name) === wanted
  return (
    isSo(destinationId, 'destination-id') &&
    isSo(sourceId, 'source-id') &&
    isSo(reason, 'reason') &&
    isSo(messageId, 'message-id')
  )
}

function chooseUndelivered(letter: SourceRecord, choice: Choice): Chosen {
  const { topics, catalog, jobId } = choice
  const origin = parseOrigin(headerText(letter.headers, 'origin') ?? '')
  const sourceId = headerText(letter.headers, 'source-id')
  const reason = headerText(letter.headers, 'reason') ?? ''
  const firstSeen = headerText(letter.headers, 'first-seen')
  const headers = {
    ...(sourceId !== undefined && { 'source-id': sourceId }),
    'replay-job': jobId,
    // The original time is kept, so that the message is dropped if its user was deleted since then.
    ...(firstSeen !== undefined && { 'first-seen': firstSeen }),
  }
  switch (origin?.topic) {
    case topics.events:
    case topics.audienceChanges: {
      // A part of a sync is useless without the other parts. The next sync sends all of its parts again.
      if (sourceId === undefined || sourceId === '' || reason.startsWith('sync_'))
        return leaveOut('not_replayable')
      const source = catalog().sources.get(sourceId)
      if (source === undefined) return leaveOut('source_unknown')
      // An event of a disabled source would be dropped, so it is left out. A value of a disabled space is
      // kept, so it is replayed.
      if (!source.enabled && origin.topic === topics.events) return leaveOut('source_off')
      return send(letter, { topic: origin.topic, headers })
    }
    case topics.deletions:
      return send(letter, { topic: origin.topic, headers })
    default:
      // A state of an audience would overwrite newer values, so it isn't replayed. A backfill can send the
      // present values.
      return leaveOut('not_replayable')
  }
}

function send(
  { partition, key, value }: SourceRecord,
  { topic, headers }: Pick<ReplayedRecord, 'topic' | 'headers'>,
): Chosen {
  return { kind: 'send', record: { topic, partition, key, value, headers } }
}
