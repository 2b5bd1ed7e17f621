import type { SourceRecord } from './chosen.ts'
import type { OffsetRange } from './job.ts'

/**
 * A reader of the topic that is replayed. It reads one piece at a time: the records that one fetch returns.
 */
export type Pieces = {
  /**
   * Resolves with the records that one fetch returns. Their offsets are at least `from` and lower than `to`.
   * `next` is the offset at which the next fetch must start. Resolves with `lost` if the partition ends
   * before `to`, because its topic was created again or has lost records. Resolves with `recreated` if the
   * topic has another id than the one that is to be read. Rejects if Kafka returns no records.
   */
  piece(where: {
    readonly partition: number
    readonly from: number
    readonly to: number
    readonly signal?: AbortSignal
    /** How long Kafka may return nothing, in milliseconds. Absent: for long. */
    readonly stallTimeoutMs?: number
  }): Promise<{ readonly records: readonly SourceRecord[]; readonly next: number } | 'lost' | 'recreated'>
}

/**
 * Returns the next partition after `last` that still has records to read, and isn't set aside. So partitions
 * take turns. Returns `undefined` if there is none.
 */
export function nextPartition(
  ranges: readonly OffsetRange[],
  offsets: readonly number[],
  last: number,
  isAside: (partition: number) => boolean = () => false,
): number | undefined {
  for (let step = 1; step <= ranges.length; step++) {
    const partition = (last + step) % ranges.length
    if (isLeft(ranges, offsets, partition) && !isAside(partition)) return partition
  }
  return undefined
}

function isLeft(ranges: readonly OffsetRange[], offsets: readonly number[], partition: number): boolean {
  const range = ranges[partition]
  return range !== undefined && (offsets[partition] ?? range.start) < range.end
}

/**
 * Returns the number of offsets that a replay has processed, and the number of all its offsets. Some offsets
 * may have no record.
 */
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
