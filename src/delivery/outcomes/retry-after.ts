// The limits of `Retry-After`. With this header, a hook that answers 429 or 503 may ask for a wait:
//
// - `parseRetryAfter`: the wait is at most a year, whatever the header says.
// - `heldUntil`: during the wait, only the last tries of messages are sent to the hook. This lasts for at
//   most `breaker.maxOpenFor`, because the answer to one message must not make all other messages fail.
// - `notBefore`: the message that got this answer isn't sent to the hook again before the wait ends. If the
//   wait is longer than the ladder, the message still gets its last try.

const maxMs = 365 * 24 * 3600 * 1000

/**
 * Returns when a hook's pause ends, on the clock of `nowMs`. During the pause, only last tries are sent to
 * the hook.
 */
export function heldUntil(nowMs: number, waitMs: number, maxHoldMs: number): number {
  return nowMs + Math.min(waitMs, maxHoldMs)
}

/**
 * Returns the time, in epoch milliseconds, before which a message isn't sent to the hook again. `lastTryMs`:
 * the time when the message's last try is due.
 */
export function notBefore(nowMs: number, waitMs: number, lastTryMs: number): number {
  return Math.min(nowMs + waitMs, lastTryMs)
}

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
