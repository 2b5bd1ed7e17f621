import type { HeaderValue, ReceivedHeaders } from './record-headers.ts'

// The forms of a Kafka record. A record that is taken and must be settled is a `HeldRecord`.

/** A record to write. Strings are written as UTF-8. */
export type WrittenRecord = {
  readonly key?: Buffer | string | null
  readonly value: Buffer | string | null
  readonly headers?: Readonly<Record<string, HeaderValue | readonly HeaderValue[] | undefined>> | undefined
  /**
   * The record's time in epoch milliseconds. If it is absent, the record gets the present time. A topic keeps
   * the given time if its `message.timestamp.type` is `CreateTime`.
   */
  readonly timestampMs?: number | undefined
}

/** Records of one partition, in the order in which they are written. */
export type PartitionRecords<T extends WrittenRecord = WrittenRecord> = {
  readonly topic: string
  readonly partition: number
  readonly records: readonly T[]
}

/**
 * A record that Sluice writes to one of its topics. If it was made from another record, it keeps the
 * partition number of that record.
 */
export type OutboundRecord = {
  readonly topic: string
  readonly partition: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: Record<string, string>
}

/**
 * A record that has a key, read from a topic that keeps the last record of each key. Key and value are slices
 * of the answer to a fetch. If you keep them, copy them, because a slice keeps the whole answer in memory.
 */
export type KeyedRecord = {
  readonly offset: number
  readonly key: Buffer
  /** `null` deletes the value of the key. */
  readonly value: Buffer | null
  /** The time of the record in epoch milliseconds. */
  readonly timestampMs: number
  /** The epoch of the leader that appended the record. -1 or absent if it isn't known. */
  readonly leaderEpoch?: number
}

/**
 * A record as the log has it. Key, value and headers are slices of the answer to a fetch. If you keep them,
 * copy them, because a slice keeps the whole answer in memory.
 */
export type WholeRecord = {
  readonly offset: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: NonNullable<ReceivedHeaders>
  /** The time of the record in epoch milliseconds. */
  readonly timestampMs: number
  /** The epoch of the leader that appended the record. -1 or absent if it isn't known. */
  readonly leaderEpoch?: number
  /**
   * The reason why the content can't be read. A record with a reason takes the place of all further records
   * of its batch.
   */
  readonly unreadable?: string
}
