import type { PartitionReader } from '../kafka/read/partition-reader.ts'
import type { FoundLog } from './queue-options.ts'

/** A failed read or write is tried again after this time, in milliseconds. */
export const againAfterMs = 1_000
/**
 * The end of the log is asked for this often, in milliseconds: in the first minute of a tenure, because the
 * previous owner may still append, and later. Appends of this owner need no such look.
 */
export const lookMs = { early: 5_000, late: 30_000, earlyFor: 60_000 }

/**
 * Looks whether others have appended records to the logs of units, and whether the logs have lost some. Asks
 * once for all units, because this takes no more requests than for one. Returns the units whose logs can't be
 * looked up now. `nowMs` is the time of `performance.now`.
 */
export async function lookAt(
  queues: ReadonlyMap<number, { beginLook(nowMs: number): (found: FoundLog) => Promise<void> }>,
  {
    reader,
    topic,
    nowMs,
  }: {
    readonly reader: Pick<PartitionReader, 'ranges'>
    readonly topic: string
    readonly nowMs: number
  },
): Promise<readonly number[]> {
  const begun = [...queues].map(([unit, queue]) => ({ unit, take: queue.beginLook(nowMs) }))
  const { topicId = '', ranges } = await reader.ranges({ topic, partitions: begun.map(({ unit }) => unit) })
  const taken = begun.map(async ({ unit, take }) => {
    const range = ranges.get(unit)
    if (range === undefined) return [unit]
    await take({ topicId, range })
    return []
  })
  return (await Promise.all(taken)).flat()
}
