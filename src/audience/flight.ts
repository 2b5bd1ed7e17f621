import type { Entry } from './entry.ts'
import type { Subject } from './state-record.ts'
import type { Version } from './version.ts'

/** How a write came to its end. `given_back`: the unit is left, and nobody knows. */
export type WriteEnd = 'acknowledged' | 'refused' | 'given_back'

/** Something that waits for a key to be free. */
export type KeyWaiter = {
  /** The key is free: `held` is what it has. May write it again; what waits behind waits on then. */
  resume(held: Entry | undefined): void
  giveBack(): void
}

export type Write = {
  readonly subject: Subject
  readonly key: string
  /** Its offset is not known yet. */
  readonly entry: Entry
  readonly isEmitting: boolean
  /** What the key has so far. */
  readonly held: Entry | undefined
  readonly onEnd: (end: WriteEnd) => void
}

/** One write that isn't acknowledged; there is one at a time for a key. */
export class Flight {
  readonly write: Write
  /** What is acknowledged of the key. */
  held: Entry | undefined
  /** The highest offset at which something older than the best was read meanwhile; -1: none. */
  olderAt = -1
  /**
   * Something else may have been told up to this version: what has landed in the end has to be newer, or be
   * told anew.
   */
  unreported: Version | undefined
  /** It brings nothing new, and only puts the log in order. */
  isRepair = false
  waiting: KeyWaiter[] | undefined
  /** Offsets that the checkpoint waits at until the key is in order. */
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
