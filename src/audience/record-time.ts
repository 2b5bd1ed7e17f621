import { parseTimestamp } from '../message/timestamp.ts'
import { type AudienceRefusal, refusal } from './refusal.ts'

/** Limit on the time by which a producer's clock may be ahead of the broker's clock, in milliseconds. */
export const mostAheadMs = 5 * 60_000

/**
 * Reads a time of a record that an upstream program wrote. Refuses a time that is more than `mostAheadMs`
 * after `appendedMs`, which is the append time by the broker's clock. With such a time, the record's value
 * would replace all values that come about before that time. Never throws.
 */
export function readTime(
  field: string,
  text: string,
  appendedMs: number,
): { ok: true; ms: number } | AudienceRefusal {
  const ms = parseTimestamp(text)
  if (ms === undefined) {
    return refusal(
      'bad_timestamp',
      `Send ${field} as ISO 8601, such as 2009-11-10T23:00:00.000Z: it is no time.`,
    )
  }
  if (ms - appendedMs > mostAheadMs) {
    return refusal(
      'ahead_of_time',
      `Set the producer's clock: ${field} is more than ${mostAheadMs / 60_000} minutes ahead of the broker's.`,
    )
  }
  return { ok: true, ms }
}
