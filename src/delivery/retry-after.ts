const maxMs = 365 * 24 * 3600 * 1000

/**
 * Reads a `Retry-After` header (RFC 9110 §10.2.3): whole seconds or an HTTP date. Gives the wait in
 * milliseconds, 0 for a date that has passed, and `undefined` for anything else.
 */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined
  const text = value.trim()
  if (/^\d{1,10}$/.test(text)) return Math.min(Number(text) * 1000, maxMs)
  if (!/^[A-Za-z]{3,9},? /.test(text)) return undefined
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : Math.min(Math.max(0, at - nowMs), maxMs)
}
