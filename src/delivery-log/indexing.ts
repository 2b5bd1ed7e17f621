/** A value of a record of the topic. */
export type TopicBlock = {
  readonly partition: number
  readonly offset: number
  /** When it was appended, in epoch milliseconds. */
  readonly timestampMs: number
  readonly value: Uint8Array
}

/** Puts what comes of the topic where it can be asked for. */
export type Indexing = {
  /** From where on partitions are to be read; those that aren't in it from their beginning. */
  readonly positions: ReadonlyMap<number, { next: number; topicId: string }>
  add(blocks: readonly TopicBlock[]): void
  /**
   * The partition is read from here on; `isOther`: its log is another one than the one that was read before.
   */
  restart(partition: number, next: number, topicId: string, isOther: boolean): void
  /** Bytes that were given to it and are not in it yet. */
  readonly heldBytes: number
  /** Why nothing gets into it at present, in words. */
  readonly trouble: string | undefined
  /** Writes what it has. */
  stop(): Promise<void>
}

/** What an index tells while it is written. */
export type IndexingEvents = {
  readonly onIndexed: (counts: { rows: number; unreadable: number; expired: number }) => void
  /** Something was taken: there may be room again. */
  readonly onTaken: () => void
}

/** A worker whose clock is further ahead than this, in milliseconds, is not believed. */
const maxAheadMs = 5 * 60_000

/** When a state came about: as its worker says, or when its block was appended where that clock is wrong. */
export function believedMs(atMs: number, appendedMs: number): number {
  return atMs > appendedMs + maxAheadMs ? appendedMs : atMs
}
