import type { Entry } from './entry.ts'
import type { StateKey } from '../records/state-record.ts'
import type { Version } from '../records/version.ts'

/**
 * The end of a write. `given_back`: the unit now has another owner, and it isn't known whether Kafka has the
 * record.
 */
export type WriteEnd = 'acknowledged' | 'refused' | 'given_back'

/**
 * A change or a record that waits until its key is free. A key is free while no write of the key is in
 * flight.
 */
export type KeyWaiter = {
  /**
   * Called once the key is free. `held` is the key's present entry. If this call writes the key again, the
   * other waiters of the key continue to wait.
   */
  resume(held: Entry | undefined): void
  giveBack(): void
}

export type Write = {
  readonly stateKey: StateKey
  readonly key: string
  /** The entry to write. The offset of its record isn't known yet. */
  readonly entry: Entry
  readonly isEmitting: boolean
  /** The key's last acknowledged entry at the start of the write. */
  readonly held: Entry | undefined
  readonly onEnd: (end: WriteEnd) => void
}

/** A write that Kafka hasn't acknowledged yet. A key has at most one such write at a time. */
export class Flight {
  readonly write: Write
  /** The key's last acknowledged entry. */
  held: Entry | undefined
  /**
   * The highest offset of the records of the key that were read during the write and have an older version
   * than the best entry. -1 if no such record was read.
   */
  olderAt = -1
  /**
   * The version up to which receivers may have got another value. If the `since` of the best value is lower
   * than this version, the best value must be sent to receivers again.
   */
  unreported: Version | undefined
  /**
   * True if the write has no new value: it only writes the best entry again, so that its record is the last
   * record of the key.
   */
  isRepair = false
  waiting: KeyWaiter[] | undefined
  /**
   * Offsets of the key's records. The checkpoint must not pass these until the key needs no rewrite any more.
   */
  blocked: number[] | undefined

  constructor(write: Write) {
    this.write = write
    this.held = write.held
  }

  wait(waiting: KeyWaiter): void {
    if (this.waiting === undefined) this.waiting = [waiting]
    else this.waiting.push(waiting)
  }
}
