/**
 * The words of the delivery log: what its records, its schema (`schemas/attempts.avsc`) and its queries have
 * in common.
 */

/** What a record tells of a delivery. The order is that of the schema: new ones go to the end. */
export const logKinds = [
  'attempted',
  'parked',
  'delivered',
  'dead',
  'superseded',
  'suppressed',
  'omitted',
  'filtered',
] as const
export type LogKind = (typeof logKinds)[number]

export const logVerdicts = ['', 'delivered', 'retry', 'final'] as const
export type LogVerdict = (typeof logVerdicts)[number]

export const logOutcomes = [
  '',
  'answer',
  'timeout',
  'connection',
  'dns',
  'proxy',
  'certificate',
  'address',
  'request',
] as const
export type LogOutcome = (typeof logOutcomes)[number]

/** Of the first version: a reader that finds another leaves the block alone. */
export const blockFormat = 1

/** Bytes of a keyed hash of a user. */
export const userHashBytes = 6

/** One state of one delivery. Texts are empty where they don't apply. */
export type LogRecord = {
  /** When it came about, in epoch milliseconds. */
  readonly atMs: number
  readonly kind: LogKind
  /** The delivery has come to its end with it. An attempt is the end where it delivered. */
  readonly isEnd: boolean
  /** How many deliveries it stands for: not all that succeed have a record of their own. */
  readonly weight: number
  readonly destination: string
  readonly hook: string
  readonly source: string
  readonly messageId: string
  readonly messageType: string
  /** The record that the message came with. */
  readonly origin: { readonly topic: string; readonly partition: number; readonly offset: number }
  /** The partition of this record, and of all others of its message. */
  readonly unit: number
  /** Which try; 0 before the first. */
  readonly attempt: number
  readonly verdict: LogVerdict
  readonly outcome: LogOutcome
  /** 0 without an answer. */
  readonly status: number
  readonly durationMs: number
  /** Why it was parked, is dead, was left out or filtered. */
  readonly reason: string
  /** The code of an error, such as ECONNREFUSED. */
  readonly error: string
  /** When one that was parked is due, in epoch milliseconds; else 0. */
  readonly dueMs: number
  /** When its message was appended first, in epoch milliseconds. */
  readonly firstSeenMs: number
  /** A keyed hash of the user, as 12 hex digits; empty without a key. */
  readonly user: string
  /** The replay that it came by. */
  readonly job: string
  /** The beginning of a failed answer, where that is kept. */
  readonly answer: string
}
