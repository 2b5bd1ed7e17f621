import type { Feed } from './feed.ts'
import type { Partition } from './partition.ts'

/** Facts about one of this member's partitions, for metrics and probes. */
export type PartitionState = Pick<
  Partition,
  'topic' | 'id' | 'waitMs' | 'isWaiting' | 'isFull' | 'isWindowFull' | 'lag' | 'oldestUnsettledMs'
> &
  Pick<Feed, 'isPaused' | 'headDueMs'> & {
    /** The number of records that were passed to the worker and aren't settled. */
    readonly heldCount: number
  }

/** Returns the present facts about a partition. `feed` is `undefined` until the partition is started. */
export function stateOf(partition: Partition, feed: Feed | undefined): PartitionState {
  const { topic, id, waitMs, isWaiting, isFull, isWindowFull, lag, oldestUnsettledMs, watermark } = partition
  const { isPaused, headDueMs } = feed ?? { isPaused: false, headDueMs: 0 }
  const { heldCount } = watermark
  const delays = { isWaiting, isFull, isWindowFull, isPaused, headDueMs }
  return { topic, id, waitMs, lag, oldestUnsettledMs, heldCount, ...delays }
}
