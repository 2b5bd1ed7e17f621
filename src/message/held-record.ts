import type { ReceivedHeaders } from './record-headers.ts'

/**
 * A record that was taken from a topic and isn't settled yet. Its holder calls `settle` when the record needs
 * nothing more, or `giveBack` to leave it to the next owner. It calls one of the two, once.
 */
export type HeldRecord = {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /** The time when the broker appended the record, in epoch milliseconds. */
  readonly timestampMs: number
  /** True when the worker took the record long after it was available or due, because it is catching up. */
  readonly isLate: boolean
  /** True when the partition belongs to another member: nothing more is started for the record. */
  readonly isAbandoned: boolean
  /**
   * True when the record is abandoned and its next owner did not wait for this member. That owner delivers
   * the record again in full.
   */
  readonly isElsewhere?: boolean
  /** True when a previous owner may have started the record, and left without a final mark. */
  readonly mayHaveBegun?: boolean
  settle(): void
  /** Gives the record back unsettled. This worker does nothing more with it. */
  giveBack(): void
}

/**
 * The content of a record. It is separate from the record itself, which is kept until it is settled. Key and
 * value are slices of a whole fetch, so keeping one would keep the whole fetch.
 */
export type RecordContent = {
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers?: ReceivedHeaders
  /** The reason why the content could not be read from Kafka; then it has neither key nor value. */
  readonly unreadable?: string
}
