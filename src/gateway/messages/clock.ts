import { formatTimestamp, parseTimestamp } from '../../message/timestamp.ts'
import { isAbsent } from '../../message/validate.ts'

/**
 * The time at which a request arrived. `ms`: milliseconds since 1970. `text`: the same time in the format of
 * `receivedAt`. `corrects`: true if the times of its messages are corrected by the error of the client's
 * clock.
 */
export type Arrival = { readonly ms: number; readonly text: string; readonly corrects: boolean }

export function arrivalAt(ms: number, corrects = true): Arrival {
  const text = formatTimestamp(ms)
  if (text === undefined) throw new Error(`the clock of this machine can't be right: ${ms}`)
  return { ms, text, corrects }
}

/** The times that the messages of one request share. */
export type Occasion = {
  readonly arrival: Arrival
  readonly sentAt: unknown
  /**
   * How many milliseconds the client's clock is ahead of the gateway's clock: `sentAt − receivedAt`.
   * `undefined` if `sentAt` can't come from a clock, or if the difference says nothing about the clock.
   */
  readonly leadMs: number | undefined
}

/**
 * Ten years, in milliseconds. If a `sentAt` is further from the time of arrival, it doesn't come from a
 * clock, but is a zero or a constant.
 */
const maxLeadMs = 3_652 * 24 * 60 * 60 * 1_000

/**
 * A smaller difference may be the time that the request was under way. Servers have clocks that are right, so
 * a correction would only change the time that was given.
 */
const leastLeadMs = 1_000

export function occasionOf(sentAt: unknown, arrival: Arrival): Occasion {
  if (!arrival.corrects) return { arrival, sentAt, leadMs: undefined }
  const sentAtMs = timeOf(sentAt)
  const leadMs = sentAtMs === undefined ? undefined : sentAtMs - arrival.ms
  const isClock = leadMs !== undefined && Math.abs(leadMs) >= leastLeadMs && Math.abs(leadMs) <= maxLeadMs
  return { arrival, sentAt, leadMs: isClock ? leadMs : undefined }
}

/**
 * Returns the time at which a message happened, by the gateway's clock: `receivedAt − (sentAt −
 * originalTimestamp)`. This formula removes the error of the client's clock. If `sentAt` doesn't come from a
 * clock, or if the corrected time would be outside of the years 0000 to 9999, returns the client's time as it
 * is. If the message has no time, returns the time of arrival. Returns `undefined` if the message's time
 * can't be read.
 */
export function correctTimestamp(original: unknown, { arrival, leadMs = 0 }: Occasion): string | undefined {
  if (isAbsent(original)) return arrival.text
  const originalMs = timeOf(original)
  if (originalMs === undefined) return undefined
  return formatTimestamp(originalMs - leadMs) ?? formatTimestamp(originalMs)
}

function timeOf(text: unknown): number | undefined {
  return typeof text === 'string' ? parseTimestamp(text) : undefined
}
