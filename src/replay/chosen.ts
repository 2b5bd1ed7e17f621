import type { MessageLimits } from '../message/limits.ts'
import type { ReceivedHeaders } from '../message/record-headers.ts'
import type { Selection } from './selection.ts'

/** A record of the topic that is replayed. */
export type SourceRecord = {
  readonly partition: number
  readonly offset: number
  /** The append time, in epoch milliseconds. */
  readonly timestampMs: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: ReceivedHeaders
  /** The reason why the content can't be read. The record then represents its whole batch. */
  readonly unreadable?: string
}

/** A record to write. */
export type ReplayedRecord = {
  readonly topic: string
  readonly partition: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: Record<string, string>
}

/**
 * Reasons why a record that was asked for isn't sent again:
 *
 * - `value_omitted`: the dead letter was too large to keep its message.
 * - `not_replayable`: a part of a sync, a state of an audience, or a record without a source. It would fail
 *   again, or overwrite newer values.
 * - `unreadable`: no message can be made from the record.
 * - `destination_off`, `destination_removed`, `source_unknown`, `source_off`: by the present catalog.
 * - `auto_paused`: Sluice has paused the destination. The record would become a dead letter again.
 * - `filtered`: the message's `integrations` leave webhooks out.
 * - `too_large`: no topic accepts the record.
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
  'filtered',
  'too_large',
] as const
export type LeftOutReason = (typeof leftOutReasons)[number]

/** The decision about a record. `no`: the replay didn't ask for it. */
export type Chosen =
  | { readonly kind: 'no' }
  | { readonly kind: 'left_out'; readonly why: LeftOutReason }
  | { readonly kind: 'send'; readonly record: ReplayedRecord }

/** The part of the catalog that a replay reads. */
export type ReplayCatalog = {
  readonly sources: ReadonlyMap<string, { readonly enabled: boolean; readonly kind?: 'events' | 'audiences' }>
  readonly destinations: ReadonlyMap<
    string,
    {
      readonly id: string
      readonly state: 'on' | 'off' | 'paused' | 'auto_paused'
      readonly sources: readonly string[]
    }
  >
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
  /** Number of units at present. */
  readonly partitions: number
}

export const notAsked: Chosen = { kind: 'no' }

export function leaveOut(why: LeftOutReason): Chosen {
  return { kind: 'left_out', why }
}

/**
 * Returns true if a record is within the time of the selection. The offsets to read were chosen by time
 * already. But if producers set the timestamps, the records of a topic aren't in the order of time.
 */
export function isInTime({ fromMs, toMs }: Selection, timestampMs: number): boolean {
  return timestampMs >= (fromMs ?? -Infinity) && timestampMs < (toMs ?? Infinity)
}
