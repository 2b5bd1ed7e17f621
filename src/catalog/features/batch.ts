import { formatWait, parseWait } from '../../retry/duration.ts'

// The field `batch` of a destination: its defaults and its limits.

/** How the messages of a destination are sent together, in one request. */
export type Batch = {
  readonly maxMessages: number
  /** The most bytes of a request's body. A larger message is sent alone. */
  readonly maxBytes: number
  /** The longest time that a message waits for others, in milliseconds. */
  readonly maxWaitMs: number
  /** `json`: an array. `ndjson`: a line for each message. */
  readonly format: 'json' | 'ndjson'
}

export const batchDefaults = {
  maxMessages: 100,
  maxBytes: 524_288,
  maxWait: '200ms',
  format: 'json',
} as const

/** A message waits in memory for others, so the wait is short. */
export const batchLimits = { maxMessages: 1_000, maxBytes: 4_194_304, maxWaitMs: 5_000 } as const

export const batchWaitPattern = '^[1-9][0-9]{0,8}(?:ms|s|m|h)$'
export const batchWaitExpected = `a duration of up to ${formatWait(batchLimits.maxWaitMs)}, such as 200ms`

/** Returns the batches of a destination, with the defaults. `given` has no faults. */
export function readBatch({
  maxWait = batchDefaults.maxWait,
  ...given
}: {
  readonly maxMessages?: number
  readonly maxBytes?: number
  readonly maxWait?: string
  readonly format?: Batch['format']
}): Batch {
  const { maxMessages, maxBytes, format } = batchDefaults
  return { maxMessages, maxBytes, format, ...given, maxWaitMs: parseWait(maxWait) ?? 0 }
}

/** Returns a batch as the catalog file has it. */
export function batchInFile({ maxWaitMs, ...batch }: Batch): object {
  return { ...batch, maxWait: formatWait(maxWaitMs) }
}

/** Checks the `maxWait` of a batch against its limit. The catalog's schema checks the format. */
export function batchWaitBreach(given: unknown): { problem: string; advice: string } | undefined {
  const ms = typeof given === 'string' ? parseWait(given) : undefined
  if (ms === undefined || ms <= batchLimits.maxWaitMs) return undefined
  return { problem: 'is too long', advice: `write ${batchWaitExpected}` }
}
