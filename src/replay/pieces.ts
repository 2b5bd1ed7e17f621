import type { SourceRecord } from './chosen.ts'
import type { OffsetRange } from './job.ts'

/** A reader of the topic that is replayed. */
export type Pieces = {
  /**
   * Reads the records that one fetch brings from `from` on, before `to`. `next` is the start of the next
   * piece. Throws if Kafka returns nothing.
   */
  piece(where: {
    readonly partition: number
    readonly from: number
    readonly to: number
    readonly signal?: AbortSignal
  }): Promise<{ readonly records: readonly SourceRecord[]; readonly next: number }>
}

/**
 * Returns the next partition after `last` that has something left, so that partitions take turns. `undefined`
 * if no partition has anything left.
 */
export function nextPartition(
  ranges: readonly OffsetRange[],
  offsets: readonly number[],
  last: number,
): number | undefined {
  for (let step = 1; step <= ranges.length; step++) {
    const partition = (last + step) % ranges.length
    if (isLeft(ranges, offsets, partition)) return partition
  }
  return undefined
}

function isLeft(ranges: readonly OffsetRange[], offsets: readonly number[], partition: number): boolean {
  const range = ranges[partition]
  return range !== undefined && (offsets[partition] ?? range.start) < range.end
}

/** Counts the offsets that were passed, and all offsets. Some offsets may have no record. */
export function passed(
  ranges: readonly OffsetRange[],
  offsets: readonly number[],
): { readonly passed: number; readonly all: number } {
  let [done, all] = [0, 0]
  for (const [partition, { start, end }] of ranges.entries()) {
    all += Math.max(0, end - start)
    done += Math.max(0, Math.min(end, offsets[partition] ?? start) - start)
  }
  return { passed: done, all }
}
