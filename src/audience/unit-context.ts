import type { Entry } from './entry.ts'
import type { Checkpoint } from './checkpoint.ts'
import type { KeyFilter } from './key-filter.ts'
import type { Ledger } from './ledger.ts'
import type { AudiencePorts } from './audience-ports.ts'
import type { PropertyStateKey } from './property-state.ts'
import type { StateStore } from './store.ts'
import type { Version } from './version.ts'

/**
 * A purge erases everything that a unit holds of a deleted user and that isn't newer than the deletion floor.
 * A newer value that was last sent before the deletion is sent again.
 */
export type Purge = {
  readonly deletionKey: string
  readonly stateKeys: readonly PropertyStateKey[]
  /** The offset at which a state to be erased was read; -1 if none was read. */
  readonly deadAt: number
  readonly done: () => void
}

/** The objects that the parts of one unit share. */
export type UnitContext = {
  readonly unit: number
  readonly partitions: number
  readonly store: StateStore
  readonly ledger: Ledger
  /** The position up to which the store has the unit's log. Only the ledger moves it. */
  readonly checkpoint: Pick<Checkpoint, 'position'>
  readonly deletions: KeyFilter
  /** The version of the last applied sync of each audience, by its key in the store. */
  readonly syncFloors: ReadonlyMap<string, Version>
  readonly ports: AudiencePorts
  /** Returns true once the unit is being left: start nothing more, and give back what arrives. */
  readonly isEnding: () => boolean
  /** Queues a purge for a later turn. */
  readonly enqueuePurge: (purge: Purge) => void
  /**
   * Reads the entries of these keys that Kafka has acknowledged, in a later turn. Resolves with `undefined`
   * for each key once the unit is being left.
   */
  readonly readAcknowledged: (keys: readonly string[]) => Promise<readonly (Entry | undefined)[]>
  /** Ends the program, because the state can't be kept. */
  readonly fail: (error: unknown) => void
}
