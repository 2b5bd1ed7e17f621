import { formatTimestamp, parseTimestamp } from '../message/timestamp.ts'

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
  /** What the client's clock is ahead of ours: `sentAt − receivedAt`; `undefined` without a readable `sentAt`. */
  readonly leadMs: number | undefined
}

export function occasionOf(sentAt: unknown, arrival: Arrival): Occasion {
  const sentAtMs = timeOf(sentAt)
  return { arrival, sentAt, leadMs: sentAtMs === undefined ? undefined : sentAtMs - arrival.ms }
}

/**
 * When a message happened, by our clock: `receivedAt − (sentAt − originalTimestamp)`, which takes out what the
 * client's clock is wrong by. Without a readable `sentAt` the client's own time stands; without a readable time of
 * its own, or one that is corrected out of the years 0000 to 9999, the message happened when it came.
 */
export function correctTimestamp(original: unknown, { arrival, leadMs = 0 }: Occasion): string {
  const originalMs = timeOf(original)
  return originalMs === undefined ? arrival.text : (formatTimestamp(originalMs - leadMs) ?? arrival.text)
}

function timeOf(text: unknown): number | undefined {
  return typeof text === 'string' ? parseTimestamp(text) : undefined
}
