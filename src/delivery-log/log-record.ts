/**
 * The vocabulary of the delivery log, shared by its records, its schema (`schemas/attempts.avsc`) and its
 * queries.
 */

/** The kinds of records, in the order of the schema. So new kinds go to the end. */
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

/** The version of the block format. A reader ignores blocks of another version. */
export const blockFormat = 1

/** The length of a user's keyed hash, in bytes. */
export const userHashBytes = 6

/**
 * A record of the delivery log: something that happened to one delivery. Texts are empty if they don't apply.
 */
export type LogRecord = {
  /** The time at which it happened, in epoch milliseconds. */
  readonly atMs: number
  readonly kind: LogKind
  /** True if this record ends its delivery. An attempt that delivered is an end. */
  readonly isEnd: boolean
  /**
   * The number of deliveries that the record stands for. Some successes, and some filtered messages, have no
   * record of their own.
   */
  readonly weight: number
  readonly destination: string
  readonly hook: string
  readonly source: string
  readonly messageId: string
  readonly messageType: string
  /** The place of the record with which the message came. */
  readonly origin: { readonly topic: string; readonly partition: number; readonly offset: number }
  /** The partition of this record, and of all other records of its message. */
  readonly unit: number
  /** The number of the try; 0 before the first try. */
  readonly attempt: number
  readonly verdict: LogVerdict
  readonly outcome: LogOutcome
  /** The status of the answer; 0 without an answer. */
  readonly status: number
  readonly durationMs: number
  /**
   * The reason why the delivery was parked, became a dead letter or was filtered, or why a hook was left out.
   */
  readonly reason: string
  /** The code of an error, such as ECONNREFUSED. */
  readonly error: string
  /** The time when a parked delivery is due, in epoch milliseconds; else 0. */
  readonly dueMs: number
  /** The time of the message's first append, in epoch milliseconds. */
  readonly firstSeenMs: number
  /** A keyed hash of the user, as 12 hex digits; empty if users aren't hashed. */
  readonly user: string
  /** The id of the replay that sent the delivery. */
  readonly job: string
  /** The beginning of the answer of a failed request, if answers are stored. */
  readonly answer: string
}
