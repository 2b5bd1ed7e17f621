import { setTimeout as delay } from 'node:timers/promises'
import { marksReadEveryMs } from './marks.ts'

const marksSlackMs = 2_000

/**
 * Begins to tell a destination all that it may have missed of a space: from here on workers mark what is
 * missed anew. Gives the offset below which their marks are of what is read from now on.
 */
export async function beginToFill({
  tellBegun,
  needsBackfill,
  end,
  signal,
}: {
  /** Writes the mark `begun`. */
  tellBegun: () => Promise<unknown>
  /** Reads the log: whether the destination needs a backfill. */
  needsBackfill: () => Promise<boolean>
  /** Gives the offset behind all that is in the log. */
  end: () => Promise<number>
  signal?: AbortSignal
}): Promise<number> {
  await tellBegun()
  // What was missed shortly before may be marked again until then, and is made up for as well.
  if (await needsBackfill()) await delay(marksReadEveryMs + marksSlackMs, undefined, { signal })
  return end()
}
