import type { ReceivedHeaders } from './record-headers.ts'

/**
 * A record that was taken from a topic and isn't settled yet. The code that has taken the record must call
 * one of two methods once: `settle` when nothing more has to be done for the record, or `giveBack` to leave
 * the record to the next owner.
 */
export type HeldRecord = {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /** The time when the broker appended the record, in epoch milliseconds. */
  readonly timestampMs: number
  /**
   * True if the worker took the record long after the record was available or due, because it is catching up.
   */
  readonly isLate: boolean
  /**
   * True if the partition now belongs to another member. In that case, nothing more may be started for the
   * record.
   */
  readonly isAbandoned: boolean
  /**
   * True if the record is abandoned and its next owner did not wait for this member. In that case, the next
   * owner repeats all deliveries of the record.
   */
  readonly isElsewhere?: boolean
  /** True if a previous owner left without a final mark, and may have started deliveries of the record. */
  readonly mayHaveBegun?: boolean
  /**
   * True if a previous owner left without a final mark, and may have read the record too. False if somebody
   * has asked for the record again by moving the group's commit.
   */
  readonly isReadAgain?: boolean
  /** True once this member has settled all records of the partition of which `isReadAgain` is true. */
  readonly isReadAgainOver?: boolean
  /**
   * Notes that the record's message goes somewhere: it is delivered, or kept in another topic until it is. A
   * record that is settled without this note went nowhere, so its sender may send the message again. Absent
   * if nobody keeps the note.
   */
  passOn?(): void
  settle(): void
  /**
   * Leaves the record to the next owner without settling it. This worker does nothing more with the record.
   */
  giveBack(): void
}

/**
 * The content of a record. Its key and its value are parts of the buffer of a whole fetch. They aren't in
 * `HeldRecord`, because a `HeldRecord` stays in memory until it is settled, and would keep the whole buffer
 * in memory.
 */
export type RecordContent = {
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers?: ReceivedHeaders
  /** The epoch of the leader that appended the record. -1 or absent if it isn't known. */
  readonly leaderEpoch?: number
  /**
   * The reason why the content could not be read from Kafka. It is absent if the content was read. If there
   * is a reason, the content has neither key nor value.
   */
  readonly unreadable?: string
}
