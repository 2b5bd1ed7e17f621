import type { MessageLimits } from '../message/limits.ts'
import type { ReceivedHeaders } from '../message/record-headers.ts'
import type { Selection } from './selection.ts'

/** A record of the topic that is replayed. */
export type SourceRecord = {
  readonly partition: number
  readonly offset: number
  /** When it was appended, in epoch milliseconds. */
  readonly timestampMs: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: ReceivedHeaders
  /** Why its content can't be read; it stands for all of its batch. */
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
 * Why a record that was asked for isn't sent again. `value_omitted`: the dead letter was too large to have
 * its message. `not_replayable`: a part of a sync, a state of an audience, or a record without a source: it
 * would fail again, or put back what is newer. `unreadable`: no message can be made of it. `destination_off`,
 * `destination_removed`, `source_unknown`, `source_off`: by the catalog of now. `filtered`: the message wants
 * no webhooks. `too_large`: no topic takes it.
 */
export const leftOutReasons = [
  'value_omitted',
  'not_replayable',
  'unreadable',
  'destination_off',
  'destination_removed',
  'source_unknown',
  'source_off',
  'filtered',
  'too_large',
] as const
export type LeftOutReason = (typeof leftOutReasons)[number]

/** What becomes of a record. `no`: it wasn't asked for. */
export type Chosen =
  | { readonly kind: 'no' }
  | { readonly kind: 'left_out'; readonly why: LeftOutReason }
  | { readonly kind: 'send'; readonly record: ReplayedRecord }

/** What is read of the catalog. */
export type ReplayCatalog = {
  readonly sources: ReadonlyMap<string, { readonly enabled: boolean; readonly kind?: 'events' | 'audiences' }>
  readonly destinations: ReadonlyMap<
    string,
    { readonly id: string; readonly state: 'on' | 'off' | 'paused'; readonly sources: readonly string[] }
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
  /** How many units there are now. */
  readonly partitions: number
}

export const notAsked: Chosen = { kind: 'no' }

export function leaveOut(why: LeftOutReason): Chosen {
  return { kind: 'left_out', why }
}

/**
 * Offsets by time bound the reading to begin with; a topic whose producers name times of their own isn't in
 * their order.
 */
export function isInTime({ fromMs, toMs }: Selection, timestampMs: number): boolean {
  return timestampMs >= (fromMs ?? -Infinity) && timestampMs < (toMs ?? Infinity)
}
