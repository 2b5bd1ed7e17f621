import type { ReceivedHeaders } from './record-headers.ts'

/**
 * A record on loan, which was taken from a topic and isn't settled yet: `settle` when nothing more is owed
 * for it, or `giveBack` for the next owner; one of them, once.
 */
export type HeldRecord = {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /** When the broker appended it, in epoch milliseconds. */
  readonly timestampMs: number
  /** It came to us long after it could have: we are catching up. */
  readonly isLate: boolean
  /** Its partition belongs to another member now: nothing more is begun for it. */
  readonly isAbandoned: boolean
  /** Its next owner has begun it without waiting for what is done here: it delivers all of it again. */
  readonly isElsewhere?: boolean
  /** An owner before may have begun it, and left without a word. */
  readonly mayHaveBegun?: boolean
  settle(): void
  /** It isn't settled, and nothing is done with it here any more. */
  giveBack(): void
}

/**
 * What a record holds. Apart from the record itself, which is kept until it is settled: these are slices of a
 * whole fetch, and keeping one would keep all of it.
 */
export type RecordContent = {
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers?: ReceivedHeaders
  /** Why it could not be read from Kafka; it has neither key nor value then. */
  readonly unreadable?: string
}
