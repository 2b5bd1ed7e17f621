/** The value of a record of the topic. */
export type TopicBlock = {
  readonly partition: number
  readonly offset: number
  /** The time of its append, in epoch milliseconds. */
  readonly timestampMs: number
  readonly value: Uint8Array
}

/** Writes the records of the topic into an index. */
export type Indexing = {
  /**
   * The offsets from which partitions must be read. Partitions that are absent must be read from their
   * beginning.
   */
  readonly positions: ReadonlyMap<number, { next: number; topicId: string }>
  add(blocks: readonly TopicBlock[]): void
  /**
   * Notes that a partition is read from the offset `next` on. `isOther`: the partition's log is not the same
   * log as before, because the topic was created anew or lost records.
   */
  restart(partition: number, next: number, topicId: string, isOther: boolean): void
  /** The number of bytes that were added and are not in the index yet. */
  readonly heldBytes: number
  /** The reason in words why nothing can be indexed at present, if there is one. */
  readonly trouble: string | undefined
  /** Writes the remaining records. */
  stop(): Promise<void>
}

/** The events of an index that is being written. */
export type IndexingEvents = {
  readonly onIndexed: (counts: { rows: number; unreadable: number; expired: number }) => void
  /** Called when records were taken, so that there may be room again. */
  readonly onTaken: () => void
}

/** The time that a worker's clock may be ahead and still be believed, in milliseconds. */
const maxAheadMs = 5 * 60_000

/**
 * Returns the time of a record by the clock of its worker, or the append time of its block if the worker's
 * clock is wrong.
 */
export function believedMs(atMs: number, appendedMs: number): number {
  return atMs > appendedMs + maxAheadMs ? appendedMs : atMs
}
