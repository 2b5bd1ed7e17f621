import { formatTimestamp, parseTimestamp } from '../message/timestamp.ts'
import { isAbsent } from '../message/validate.ts'

/** When a request came: in milliseconds since 1970, and as a message says it. */
export type Arrival = { readonly ms: number; readonly text: string }

export function arrivalAt(ms: number): Arrival {
  const text = formatTimestamp(ms)
  if (text === undefined) throw new Error(`the clock of this machine can't be right: ${ms}`)
  return { ms, text }
}

/** What the messages of a request say of it. */
export type Occasion = {
  readonly arrival: Arrival
  readonly sentAt: unknown
  /**
   * What the client's clock is ahead of ours: `sentAt − receivedAt`; `undefined` where `sentAt` is no clock.
   */
  readonly leadMs: number | undefined
}

/** Ten years. A `sentAt` that is further off is nought or a constant, and not what a clock says. */
const maxLeadMs = 3_652 * 24 * 60 * 60 * 1_000

export function occasionOf(sentAt: unknown, arrival: Arrival): Occasion {
  const sentAtMs = timeOf(sentAt)
  const leadMs = sentAtMs === undefined ? undefined : sentAtMs - arrival.ms
  const isClock = leadMs !== undefined && Math.abs(leadMs) <= maxLeadMs
  return { arrival, sentAt, leadMs: isClock ? leadMs : undefined }
}

/**
 * When a message happened, by our clock: `receivedAt − (sentAt − originalTimestamp)`, which takes out what
 * the client's clock is wrong by. Without a `sentAt` that is a clock, or where the correction leaves the
 * years 0000 to 9999, the client's own time stands; without a time of its own the message happened when it
 * came. `undefined` where it says a time that can't be read.
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
