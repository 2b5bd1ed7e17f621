import type { Entry } from './entry.ts'
import type { StateKey } from './state-record.ts'
import type { Version } from './version.ts'

/** The end of a write. `given_back`: the unit has been left, and the result is unknown. */
export type WriteEnd = 'acknowledged' | 'refused' | 'given_back'

/** A change or a record that waits until no write of its key is in flight. */
export type KeyWaiter = {
  /**
   * Called once the key is free, with its present entry. This call may write the key again; then the waiters
   * after this one go on waiting.
   */
  resume(held: Entry | undefined): void
  giveBack(): void
}

export type Write = {
  readonly stateKey: StateKey
  readonly key: string
  /** The entry to write. Its offset is not known yet. */
  readonly entry: Entry
  readonly isEmitting: boolean
  /** The acknowledged entry of the key when the write starts. */
  readonly held: Entry | undefined
  readonly onEnd: (end: WriteEnd) => void
}

/** A write that isn't acknowledged yet. A key has at most one at a time. */
export class Flight {
  readonly write: Write
  /** The acknowledged entry of the key. */
  held: Entry | undefined
  /**
   * The highest offset at which a record with an older version than the best one was read during the write;
   * -1 if there is none.
   */
  olderAt = -1
  /**
   * The version up to which receivers may have got another value. If the value that wins isn't newer than
   * that version, it must be sent to receivers again.
   */
  unreported: Version | undefined
  /** True if the write brings no new value, and only makes the best entry the last record of its key. */
  isRepair = false
  waiting: KeyWaiter[] | undefined
  /** Offsets that the checkpoint may not pass until the key needs no repair any more. */
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
