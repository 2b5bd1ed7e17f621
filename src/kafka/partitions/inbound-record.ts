import type { KafkaMessage } from 'kafkajs'

/**
 * A record that the consumer has handed to the worker. The consumer doesn't commit past the record before
 * `settle` is called. The worker calls either `settle` or `giveBack`, once.
 */
export type InboundRecord = {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /** The time when the broker appended the record, in epoch milliseconds. */
  readonly timestampMs: number
  /**
   * True when the worker took the record long after it was available or due, because the worker is catching
   * up.
   */
  readonly isLate: boolean
  /**
   * True once this member has lost the partition. From then on the worker must start nothing more for this
   * record.
   */
  readonly isAbandoned: boolean
  /**
   * True when the record is abandoned and the partition's next owner did not wait for this member. The next
   * owner then delivers the record again to all destinations of the record.
   */
  readonly isElsewhere: boolean
  /**
   * True if a previous owner may have started the record. This is possible if the previous owner has left
   * without a final mark. It is assumed if nothing is known about the previous owner. Always false for topics
   * without `needsState`.
   */
  readonly mayHaveBegun: boolean
  settle(): void
  /**
   * Returns the record to the consumer without settling it. This member does nothing more with the record,
   * and the next owner gets the record.
   */
  giveBack(): void
}

/**
 * The content of a record. The buffers are slices of the answer to a fetch. If the caller keeps one of them,
 * the whole answer stays in memory.
 */
export type RecordContent = Pick<KafkaMessage, 'key' | 'value' | 'headers'> & {
  /**
   * The reason why this record can't be read. The record's key and value are then empty. The records directly
   * before this record may be unreadable too.
   */
  readonly unreadable?: string
}

export type TopicSubscription = {
  topic: string
  /** How long a record waits after it was appended, in milliseconds. */
  waitMs: number
  /** If true, a partition doesn't start before `prepare` has resolved for the partition's unit. */
  needsState?: boolean
  /**
   * If false, commits contain only the watermark, without the settled offsets above it. The next owner then
   * takes all records above the watermark again. The advantage is that the partition has no window that could
   * become full and stop fetching.
   */
  hasWindow?: false
}
