import type { ReceivedHeaders } from './record-headers.ts'

/**
 * A record that was taken from a topic and isn't settled yet. The code that has taken the record must call
 * one of two methods, once. It calls `settle` when nothing more has to be done for the record, or `giveBack`
 * to leave the record to the next owner.
 */
export type HeldRecord = {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /** The time when the broker appended the record, in epoch milliseconds. */
  readonly timestampMs: number
  /** True if a worker that is catching up took the record long after the record was available or due. */
  readonly isLate: boolean
  /**
   * True if the partition now belongs to another member. In that case, nothing more may be started for the
   * record.
   */
  readonly isAbandoned: boolean
  /**
   * True if the record is abandoned and its next owner did not wait for this member. In that case, the next
   * owner makes all deliveries of the record again.
   */
  readonly isElsewhere?: boolean
  /** True if a previous owner left without a final mark, and may have started deliveries of the record. */
  readonly mayHaveBegun?: boolean
  settle(): void
  /**
   * Leaves the record to the next owner without settling it. This worker does nothing more with the record.
   */
  giveBack(): void
}

/**
 * The content of a record. It is separate from `HeldRecord`, because a `HeldRecord` stays in memory until it
 * is settled. The key and the value are parts of the buffer of a whole fetch, so one of them would keep the
 * whole buffer in memory.
 */
export type RecordContent = {
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers?: ReceivedHeaders
  /** The epoch of the leader that appended the record. -1 or absent if it isn't known. */
  readonly leaderEpoch?: number
  /**
   * The reason why the content could not be read from Kafka, if there is one. In that case, the content has
   * neither key nor value.
   */
  readonly unreadable?: string
}
