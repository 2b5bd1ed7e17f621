let lastMs = 0
let lastMember = ''

/**
 * `,"time":"…"` in ISO 8601, for a log line. Spelling a date costs more than a line: those of one millisecond
 * share it.
 */
export function timeMember(): string {
  const nowMs = Date.now()
  if (nowMs !== lastMs) {
    lastMs = nowMs
    lastMember = `,"time":"${new Date(nowMs).toISOString()}"`
  }
  return lastMember
}
