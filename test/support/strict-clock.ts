let lastMs = 0

/** Returns a time, in ISO 8601, that is later than all times returned before. */
export function now(): string {
  lastMs = Math.max(Date.now(), lastMs + 1)
  return new Date(lastMs).toISOString()
}
