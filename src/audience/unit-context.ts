import type { Entry } from './entry.ts'
import type { Checkpoint } from './checkpoint.ts'
import type { KeyFilter } from './key-filter.ts'
import type { Ledger } from './ledger.ts'
import type { AudiencePorts } from './audience-ports.ts'
import type { PropertySubject } from './property-state.ts'
import type { StateStore } from './store.ts'
import type { Version } from './version.ts'

/**
 * Erases what a unit holds of a deleted user and isn't newer than the deletion floor. What is newer and was
 * reported before the deletion is reported anew.
 */
export type Purge = {
  readonly deletionKey: string
  readonly subjects: readonly PropertySubject[]
  /** The offset at which a state to be erased was read; -1: none was. */
  readonly deadAt: number
  readonly done: () => void
}

/** What the parts of one unit share. */
export type UnitContext = {
  readonly unit: number
  readonly partitions: number
  readonly store: StateStore
  readonly ledger: Ledger
  /** How far the unit's log is in the store; the ledger alone brings it on. */
  readonly checkpoint: Pick<Checkpoint, 'position'>
  readonly deletions: KeyFilter
  /** The version of the last applied sync, by its key in the store. */
  readonly syncFloors: ReadonlyMap<string, Version>
  readonly ports: AudiencePorts
  /** The unit is being left: begin nothing more, give back what comes. */
  readonly isEnding: () => boolean
  /** Queues a purge for a turn to come. */
  readonly enqueuePurge: (purge: Purge) => void
  /**
   * Reads what Kafka has of these keys in a turn to come; `undefined` for each once the unit is being left.
   */
  readonly readAcknowledged: (keys: readonly string[]) => Promise<readonly (Entry | undefined)[]>
  /** Ends the program: state can't be kept. */
  readonly fail: (error: unknown) => void
}
