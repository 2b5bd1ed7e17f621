import { type RefusalReason, refusalReasons } from '../message/dead-letter-reasons.ts'

/**
 * Why a message that was sent doesn't go to Kafka though its request is answered 200, or is answered 401:
 * label values.
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

/** What only the value of a record can be. */
const ofRecords: ReadonlySet<LeftOutReason> = new Set(['empty_value', 'not_utf8'])

/** Those that an answer gives for a message. */
export const rejectedReasons: readonly LeftOutReason[] = [
  ...refusalReasons.filter((reason) => !ofRecords.has(reason)),
  'message_too_large',
  'source_disabled',
]
