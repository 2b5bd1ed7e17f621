import { type RefusalReason, refusalReasons } from '../../message/dead-letter-reasons.ts'
import { maxMessageBytes } from './request-limits.ts'

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

/** What to do about a message that was left out, for reasons that need no look at the message. */
const advice: Partial<Record<LeftOutReason, string>> = {
  not_an_object: 'Send a message as one JSON object.',
  no_user_anon_id: "Set userId or anonymousId to a string that isn't empty.",
  bad_timestamp: 'Send timestamp as ISO 8601, such as 2009-11-10T23:00:00.000Z, or leave it out.',
  message_too_large: `Send at most ${maxMessageBytes} bytes (32 KB) in a message.`,
  body_too_large: 'Send less: written out, the message is too large.',
  source_disabled: 'Switch the source on in the catalog: its messages are thrown away.',
}

export function adviceOn(reason: LeftOutReason): string {
  return advice[reason] ?? `The message was left out: ${reason}.`
}
