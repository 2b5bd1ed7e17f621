import { formatWait, parseWait } from '../../retry/duration.ts'
import type { FeatureBreach } from './feature-check.ts'

/** The lowest and the highest `timeout` of a destination, in milliseconds. */
const limits = { min: 100, max: 60_000 } as const
export const timeoutExpected = `a duration from ${formatWait(limits.min)} to ${formatWait(limits.max)}, such as 2s`
export const timeoutPattern = '^[1-9][0-9]{0,4}(?:ms|s|m)$'

/** Checks a `timeout` against its limits. The schema checks its format. */
export function timeoutBreach(given: unknown): FeatureBreach | undefined {
  const ms = typeof given === 'string' ? parseWait(given) : undefined
  if (ms === undefined || (ms >= limits.min && ms <= limits.max)) return undefined
  return { problem: 'is out of range', advice: `write ${timeoutExpected}` }
}

/** Reads a `timeout` that has no fault, in milliseconds. */
export function readTimeout(text: string): number | undefined {
  return parseWait(text)
}
