const units: readonly (readonly [suffix: string, ms: number])[] = [
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
]

/**
 * Formats a wait in its shortest exact spelling: `1m`, `90s`, `1h`, `250ms`. The text is part of a retry
 * topic's name.
 */
export function formatWait(ms: number): string {
  for (const [suffix, unitMs] of units) {
    if (ms % unitMs === 0) return `${ms / unitMs}${suffix}`
  }
  return `${ms}ms`
}

/** Reads a text that `formatWait` wrote, and returns milliseconds. Returns `undefined` for any other text. */
export function parseWait(text: string): number | undefined {
  const match = /^([1-9]\d{0,8})(ms|s|m|h)$/.exec(text)
  if (match === null) return undefined
  const unitMs = units.find(([suffix]) => suffix === match[2])?.[1] ?? Number.NaN
  return Number(match[1]) * unitMs
}
