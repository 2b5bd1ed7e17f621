import { deadReasons } from '../message/dead-letter-reasons.ts'

/** The conditions that select the records to replay. A field that is `undefined` is no condition. */
export type Selection = {
  readonly from: ReplaySource
  /**
   * The destination that gets the records. If dead letters are replayed, only the dead letters of this
   * destination are selected. If `events` is replayed, this field is always set.
   */
  readonly destinationId?: string | undefined
  readonly sourceId?: string | undefined
  /** The `reason` that the dead letters must have. `undefined` if `events` is replayed. */
  readonly reason?: string | undefined
  readonly messageId?: string | undefined
  /**
   * The time range in epoch milliseconds: all times that are at least `fromMs` and lower than `toMs`. The
   * time of an event is when Sluice accepted it. The time of a dead letter is when Sluice wrote it.
   */
  readonly fromMs?: number | undefined
  readonly toMs?: number | undefined
}

export const replaySources = ['dead-letters', 'events'] as const
export type ReplaySource = (typeof replaySources)[number]

/** `field` is the name that the field has in the admin API. */
export type SelectionFault = {
  readonly field: 'destination' | 'reason' | 'to'
  readonly problem: string
}

const reasons: ReadonlySet<string> = new Set(deadReasons)

/**
 * Returns descriptions of the faults of a selection, which say what to do. The list is empty if the selection
 * can be replayed.
 */
export function faultsOf(selection: Selection): readonly SelectionFault[] {
  const faults: SelectionFault[] = []
  const { from, destinationId, reason, fromMs, toMs } = selection
  if (from === 'events' && destinationId === undefined)
    faults.push({ field: 'destination', problem: 'name the destination that is to get the events' })
  if (from === 'events' && reason !== undefined)
    faults.push({ field: 'reason', problem: 'leave it out: events have no reason, dead letters have' })
  if (from === 'dead-letters' && reason !== undefined && !reasons.has(reason))
    faults.push({ field: 'reason', problem: `name one of ${deadReasons.join(', ')}` })
  if (fromMs !== undefined && toMs !== undefined && fromMs >= toMs)
    faults.push({ field: 'to', problem: 'name a time after `from`' })
  return faults
}

/**
 * Returns true if no condition limits the records: the selection takes all of a topic. The destination of
 * `events` is no condition, because it is the one that gets them.
 */
export function takesEverything({
  from,
  destinationId,
  sourceId,
  reason,
  messageId,
  fromMs,
  toMs,
}: Selection) {
  const conditions = [sourceId, reason, messageId, fromMs, toMs]
  if (from === 'dead-letters') conditions.push(destinationId)
  return conditions.every((condition) => condition === undefined)
}

/**
 * Returns true if the headers of a dead letter match the selection. A record that can't be read has no
 * headers, so it matches only if the selection has no condition on headers.
 */
export function isSelectedLetter(
  { destinationId, sourceId, reason, messageId }: Selection,
  header: (name: string) => string | undefined,
): boolean {
  const isSo = (wanted: string | undefined, name: string): boolean =>
    wanted === undefined || header(name) === wanted
  return (
    isSo(destinationId, 'destination-id') &&
    isSo(sourceId, 'source-id') &&
    isSo(reason, 'reason') &&
    isSo(messageId, 'message-id')
  )
}

/** Describes a selection in a short text for people. */
export function describeSelection(selection: Selection): string {
  const { from, destinationId, sourceId, reason, messageId, fromMs, toMs } = selection
  const parts = [from === 'events' ? 'events' : 'dead letters']
  if (messageId !== undefined) parts.push(`with messageId ${messageId}`)
  if (sourceId !== undefined) parts.push(`from source ${sourceId}`)
  if (reason !== undefined) parts.push(`for reason ${reason}`)
  if (destinationId !== undefined)
    parts.push(`${from === 'events' ? 'to' : 'of'} destination ${destinationId}`)
  if (fromMs !== undefined) parts.push(`from ${new Date(fromMs).toISOString()}`)
  if (toMs !== undefined) parts.push(`to before ${new Date(toMs).toISOString()}`)
  return parts.join(' ')
}
