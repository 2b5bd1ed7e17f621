import type { Feed } from './feed.ts'
import type { Partition } from './partition.ts'

/** How a partition of this member stands. */
export type PartitionState = Pick<
  Partition,
  'topic' | 'id' | 'waitMs' | 'isWaiting' | 'isFull' | 'lag' | 'oldestUnsettledMs'
> &
  Pick<Feed, 'isPaused' | 'headDueMs'> & {
    /** Records that were handed out, from the watermark on. */
    readonly heldCount: number
  }

/** Tells how a partition stands now. `feed`: absent until it is begun. */
export function stateOf(partition: Partition, feed: Feed | undefined): PartitionState {
  const { topic, id, waitMs, isWaiting, isFull, lag, oldestUnsettledMs, watermark } = partition
  const { isPaused, headDueMs } = feed ?? { isPaused: false, headDueMs: 0 }
  const { heldCount } = watermark
  return { topic, id, waitMs, isWaiting, isFull, lag, oldestUnsettledMs, isPaused, headDueMs, heldCount }
}
