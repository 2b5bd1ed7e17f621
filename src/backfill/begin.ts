import { setTimeout as delay } from 'node:timers/promises'
import { marksReadEveryMs } from './marks.ts'

const marksSlackMs = 2_000

/**
 * Begins a backfill: writes to `backfills` that a destination will get all missed values of a space. After
 * this, workers write a mark again when the destination misses a value. Resolves with an offset of
 * `backfills`. If the caller now reads all values that may have been missed, and sends them, the values make
 * up for every mark below this offset.
 */
export async function beginToFill({
  tellBegun,
  needsBackfill,
  end,
  signal,
}: {
  /** Writes the `begun` record. */
  tellBegun: () => Promise<unknown>
  /** Reads `backfills`, and returns true if the destination needs a backfill. */
  needsBackfill: () => Promise<boolean>
  /** Returns the offset after the last record of `backfills`. */
  end: () => Promise<number>
  signal?: AbortSignal
}): Promise<number> {
  await tellBegun()
  // Waits, because workers may still write marks of values that were missed shortly before. The backfill
  // makes up for these marks too.
  if (await needsBackfill()) await delay(marksReadEveryMs + marksSlackMs, undefined, { signal })
  return end()
}
