import { type RefusalReason, refusalReasons } from '../message/dead-letter-reasons.ts'

/**
 * The reasons why the gateway leaves a message out, so that it doesn't go to Kafka. The request is answered
 * 200, or 401 for `unknown_source`. The reasons are values of a metric's label.
 */
export type LeftOutReason =
  | RefusalReason
  /** A batch without a message. */
  | 'empty_batch'
  /** No source has the write key: 401. */
  | 'unknown_source'
  | 'source_disabled'
  /** Over 32 KB, in a batch that isn't too large itself. */
  | 'message_too_large'

/** Reasons that only occur with records of Kafka. */
const ofRecords: ReadonlySet<LeftOutReason> = new Set(['empty_value', 'not_utf8'])

/** The reasons that an answer may give for a message. */
export const rejectedReasons: readonly LeftOutReason[] = [
  ...refusalReasons.filter((reason) => !ofRecords.has(reason)),
  'message_too_large',
  'source_disabled',
]
