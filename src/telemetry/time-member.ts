let lastMs = 0
let lastMember = ''

/**
 * Returns `,"time":"…"` in ISO 8601 for a log line. Formatting a date costs more than the rest of a line, so
 * lines of the same millisecond share the text.
 */
export function timeMember(): string {
  const nowMs = Date.now()
  if (nowMs !== lastMs) {
    lastMs = nowMs
    lastMember = `,"time":"${new Date(nowMs).toISOString()}"`
  }
  return lastMember
}
