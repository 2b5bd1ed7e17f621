import { type RefusalReason, refusalReasons } from '../../message/dead-letter-reasons.ts'

/**
 * The reasons why the gateway doesn't write a message to Kafka. The request is answered 401 for
 * `unknown_source`, and 200 for most other reasons. The reasons are values of a metric label.
 */
export type LeftOutReason =
  | RefusalReason
  /** A batch without a message. */
  | 'empty_batch'
  /** No source has the write key: 401. */
  | 'unknown_source'
  | 'source_disabled'
  /** The message is over 32 KB, but its batch isn't too large. */
  | 'message_too_large'

/** Reasons that occur only when the worker reads a record from Kafka. */
const ofRecords: ReadonlySet<LeftOutReason> = new Set(['empty_value', 'not_utf8'])

/** The reasons that an answer may state for a message that was left out. */
export const rejectedReasons: readonly LeftOutReason[] = [
  ...refusalReasons.filter((reason) => !ofRecords.has(reason)),
  'message_too_large',
  'source_disabled',
]
