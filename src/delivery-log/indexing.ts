/** A record of the delivery log's topic. The value of such a record is a block of log records. */
export type TopicBlock = {
  readonly partition: number
  readonly offset: number
  /** The append time of the Kafka record, in epoch milliseconds. */
  readonly timestampMs: number
  readonly value: Uint8Array
}

/** A writer that adds the blocks of the delivery log's topic to an index. */
export type Indexing = {
  /**
   * The offsets from which partitions must be read. If a partition isn't in this map, it must be read from
   * its beginning.
   */
  readonly positions: ReadonlyMap<number, { next: number; topicId: string }>
  add(blocks: readonly TopicBlock[]): void
  /**
   * Call this when a partition is read from the offset `next` on. `isOther`: true if offsets may belong to
   * other records than before, because the topic was created anew or has lost records.
   */
  restart(partition: number, next: number, topicId: string, isOther: boolean): void
  /** The size of the blocks that were added and are not in the index yet, in bytes. */
  readonly heldBytes: number
  /** The reason why nothing can be indexed now; `undefined` while indexing works. */
  readonly trouble: string | undefined
  /** Writes all added blocks into the index, and stops. */
  stop(): Promise<void>
}

export type IndexingEvents = {
  readonly onIndexed: (counts: { rows: number; unreadable: number; expired: number }) => void
  /** Called when added blocks have been processed, and there may be room for more. */
  readonly onTaken: () => void
}

/**
 * A worker's clock may be ahead of a block's append time by this time, in milliseconds. If the clock is
 * further ahead, `believedMs` returns the append time.
 */
const maxAheadMs = 5 * 60_000

/**
 * Returns the time of a log record by the clock of its worker. If this time is more than `maxAheadMs` after
 * the append time of the record's block, returns the append time.
 */
export function believedMs(atMs: number, appendedMs: number): number {
  return atMs > appendedMs + maxAheadMs ? appendedMs : atMs
}
