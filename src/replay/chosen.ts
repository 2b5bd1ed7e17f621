import type { MessageFilter } from '../message/message-filter.ts'
import type { MessageLimits } from '../message/limits.ts'
import type { Routable } from '../routing/route.ts'
import type { OutboundRecord, WholeRecord } from '../message/records.ts'
import type { Selection } from './selection.ts'

/** A record of the topic that is replayed. */
export type SourceRecord = WholeRecord & { readonly partition: number }

/**
 * Reasons why a record that matches the selection isn't sent again:
 *
 * - `value_omitted`: the dead letter was too large to keep its message.
 * - `not_replayable`: the record is a part of a sync, a state of an audience, a record without a source, or a
 *   delivery without value or readable headers. It would fail again, or overwrite newer values.
 * - `unreadable`: no message can be made from the record.
 * - `destination_off`, `destination_removed`, `source_unknown`, `source_off`: the present catalog doesn't
 *   allow that the record is sent.
 * - `auto_paused`: Sluice has paused the destination automatically. The record would only wait, or become a
 *   dead letter again.
 * - `no_destination`: no destination is connected to the record's source.
 * - `filtered`: the message's `integrations` exclude webhooks, or the destination's filter excludes the
 *   message.
 * - `filter_failed`: a condition of a filter can't be evaluated for the message.
 * - `too_large`: no topic accepts the record.
 * - `already_replayed`: another replay has sent the record, or is about to.
 */
export const leftOutReasons = [
  'value_omitted',
  'not_replayable',
  'unreadable',
  'destination_off',
  'destination_removed',
  'auto_paused',
  'source_unknown',
  'source_off',
  'no_destination',
  'filtered',
  'filter_failed',
  'too_large',
  'already_replayed',
] as const
export type LeftOutReason = (typeof leftOutReasons)[number]

/**
 * The decision about a record. `no` means that the record doesn't match the selection. With `send`, there is
 * at least one record to send.
 */
export type Chosen =
  | { readonly kind: 'no' }
  | { readonly kind: 'left_out'; readonly why: LeftOutReason }
  | { readonly kind: 'send'; readonly records: readonly OutboundRecord[] }

/** The fields of the catalog that a replay reads. */
export type ReplayCatalog = {
  readonly sources: ReadonlyMap<string, { readonly enabled: boolean; readonly kind?: 'events' | 'audiences' }>
  readonly destinations: ReadonlyMap<string, ReplayDestination>
  readonly destinationsBySource: ReadonlyMap<string, readonly ReplayDestination[]>
}

export type ReplayDestination = {
  readonly id: string
  readonly state: 'on' | 'off' | 'paused' | 'auto_paused'
  readonly sources: readonly string[]
  readonly filter?: MessageFilter | undefined
  readonly mappings?: Routable['mappings']
}

export type ReplayTopics = {
  readonly events: string
  readonly audienceChanges: string
  readonly deletions: string
  readonly deadLetters: string
  readonly replays: string
}

export type Choice = {
  readonly selection: Selection
  readonly jobId: string
  readonly topics: ReplayTopics
  readonly catalog: () => ReplayCatalog
  readonly limits: MessageLimits
  /** The present number of partitions, and so of units. */
  readonly partitions: number
}

export const notAsked: Chosen = { kind: 'no' }

export function leaveOut(why: LeftOutReason): Chosen {
  return { kind: 'left_out', why }
}

/**
 * Returns true if a record is within the time range of the selection. The offsets that a replay reads are
 * chosen by time. But if producers set the timestamps, the records of a topic aren't in the order of time, so
 * each record has to be checked.
 */
export function isInTime({ fromMs, toMs }: Selection, timestampMs: number): boolean {
  return timestampMs >= (fromMs ?? -Infinity) && timestampMs < (toMs ?? Infinity)
}
