// The words that the delivery log uses in its records, in its schema (`schemas/attempts.avsc`) and in its
// queries.

/** The kinds of records, in the order of the schema. A new kind must be added at the end. */
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
  'files',
  'login',
] as const
export type LogOutcome = (typeof logOutcomes)[number]

/** The version of the block format. A reader ignores blocks of another version. */
export const blockFormat = 1

export const userHashBytes = 6

/**
 * A record of the delivery log. It describes one event of one delivery. If a text doesn't apply to the event,
 * it is empty.
 */
export type LogRecord = {
  /** The time of the event, in epoch milliseconds. */
  readonly atMs: number
  readonly kind: LogKind
  /** True if this event ends its delivery. A successful attempt may end a delivery. */
  readonly isEnd: boolean
  /**
   * The number of deliveries for which the record stands. It may be more than 1, because not every success
   * and not every filtered message gets a record.
   */
  readonly weight: number
  readonly destination: string
  readonly hook: string
  readonly source: string
  readonly messageId: string
  readonly messageType: string
  /** The place of the Kafka record with which the message came. */
  readonly origin: { readonly topic: string; readonly partition: number; readonly offset: number }
  /**
   * The partition of the delivery log's topic in which this record is. All records of a message are in the
   * same partition.
   */
  readonly unit: number
  /** The number of attempts so far; 0 before the first attempt. */
  readonly attempt: number
  readonly verdict: LogVerdict
  readonly outcome: LogOutcome
  /** The HTTP status of the answer; 0 if there was no answer. */
  readonly status: number
  readonly durationMs: number
  /**
   * The reason why the delivery was parked, became a dead letter or was filtered, or why a hook was left out.
   */
  readonly reason: string
  /** The code of an error, such as ECONNREFUSED. */
  readonly error: string
  /**
   * The time when a parked delivery is due, in epoch milliseconds. 0 for other events, and for a delivery
   * that waits for its turn in the queue of its destination.
   */
  readonly dueMs: number
  /** The time when the message was first appended to a topic, in epoch milliseconds. */
  readonly firstSeenMs: number
  /** A keyed hash of the user, as 12 hex digits; empty if users aren't hashed. */
  readonly user: string
  /** The id of the replay that sent the delivery; empty if no replay did. */
  readonly job: string
  /** The beginning of the answer to a failed request, if answers are stored. */
  readonly answer: string
}

/** Returns the `dueMs` of a record. `waitMs` is 0 if the delivery waits for its turn. */
export function dueMsOf(kind: LogKind, atMs: number, waitMs: number): number {
  return kind === 'parked' && waitMs > 0 ? atMs + waitMs : 0
}
