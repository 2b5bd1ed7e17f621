// The limits of `Retry-After`. With this header, a hook that answers 429 or 503 may ask for a wait:
//
// - `parseRetryAfter` (`src/http/retry-after.ts`): the wait is at most a year, whatever the header says.
// - `heldUntil`: during the wait, only the last tries of messages are sent to the hook. This lasts for at
//   most `breaker.maxOpenFor`, because the answer to one message must not make all other messages fail.
// - `notBefore`: the message that got this answer isn't sent to the hook again before the wait ends. If the
//   wait is longer than the ladder, the message still gets its last try.

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
