/** The longest wait, in milliseconds. */
const maxMs = 365 * 24 * 3600 * 1000

/**
 * The three forms of an HTTP date (RFC 9110 §5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94
 * 08:49:37 GMT` and `Sun Nov 6 08:49:37 1994`. The format is checked with these expressions, because
 * `Date.parse` alone accepts many texts that are no HTTP date.
 */
const datesWithZone = /^[A-Z][a-z]{2,8}, \d{2}([ -])[A-Z][a-z]{2}\1\d{2,4} \d{2}:\d{2}:\d{2} GMT$/
const dateWithoutZone = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/

/**
 * Reads a `Retry-After` header (RFC 9110 §10.2.3): whole seconds or an HTTP date. Returns the wait in
 * milliseconds, which is at most a year. Returns 0 for a date that has passed, and `undefined` for a value in
 * any other format.
 *
 * A date is counted from `serverDate`, the `Date` header of the same response, so a receiver whose clock is
 * wrong gets the wait that it means. Without a readable `Date`, a date is counted from `nowMs`.
 */
export function parseRetryAfter(
  value: string | undefined,
  nowMs: number,
  serverDate?: string,
): number | undefined {
  if (value === undefined) return undefined
  const text = value.trim()
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, maxMs)
  const atMs = parseHttpDate(text)
  if (Number.isNaN(atMs)) return undefined
  const serverMs = serverDate === undefined ? Number.NaN : parseHttpDate(serverDate.trim())
  const waitMs = atMs - (Number.isNaN(serverMs) ? nowMs : serverMs)
  return Math.min(Math.max(0, waitMs), maxMs)
}

/** Returns epoch milliseconds, or NaN if the text is no date. */
function parseHttpDate(text: string): number {
  if (datesWithZone.test(text)) return Date.parse(text)
  // This form is in GMT as well, although it doesn't say so. Date.parse would read it as local time.
  return dateWithoutZone.test(text) ? Date.parse(`${text} GMT`) : Number.NaN
}
