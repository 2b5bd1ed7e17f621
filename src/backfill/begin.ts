import { setTimeout as delay } from 'node:timers/promises'
import { marksReadEveryMs } from './marks.ts'

const marksSlackMs = 2_000

/**
 * Notes that a destination will be sent everything that it may have missed of a space. From here on, workers
 * mark newly missed values again. Returns an offset of `backfills`. Whoever sends the values that are read
 * from now on makes up for every mark below this offset.
 */
export async function beginToFill({
  tellBegun,
  needsBackfill,
  end,
  signal,
}: {
  /** Writes the mark `begun`. */
  tellBegun: () => Promise<unknown>
  /** Reads the log of marks, and returns true if the destination needs a backfill. */
  needsBackfill: () => Promise<boolean>
  /** Returns the offset after the last record of the log. */
  end: () => Promise<number>
  signal?: AbortSignal
}): Promise<number> {
  await tellBegun()
  // Workers may still mark values that were missed shortly before. The backfill makes up for these marks as
  // well.
  if (await needsBackfill()) await delay(marksReadEveryMs + marksSlackMs, undefined, { signal })
  return end()
}
