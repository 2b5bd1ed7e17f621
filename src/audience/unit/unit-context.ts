import type { Entry } from '../store/entry.ts'
import type { Checkpoint } from '../store/checkpoint.ts'
import type { KeyFilter } from '../store/key-filter.ts'
import type { Ledger } from '../store/ledger.ts'
import type { AudiencePorts } from '../audience-ports.ts'
import type { StateStore } from '../store/store.ts'
import type { Version, PropertyStateKey } from '../records/version.ts'

/**
 * A purge of some states of a deleted user. It erases the states that aren't newer than the deletion floor. A
 * newer value that was last sent before the deletion is sent again.
 */
export type Purge = {
  readonly deletionKey: string
  readonly stateKeys: readonly PropertyStateKey[]
  /** The offset of the record of a state, if reading this record has caused the purge; otherwise -1. */
  readonly deadAt: number
  readonly done: () => void
}

/** The objects that the parts of one unit share. */
export type UnitContext = {
  readonly unit: number
  readonly partitions: number
  readonly store: StateStore
  readonly ledger: Ledger
  /**
   * The position up to which the store has the records of the unit's `memberships`. Only the ledger changes
   * the position.
   */
  readonly checkpoint: Pick<Checkpoint, 'position'>
  readonly deletions: KeyFilter
  /**
   * The version of the last applied sync of each audience, by the key of the audience's sync floor in the
   * store.
   */
  readonly syncFloors: ReadonlyMap<string, Version>
  readonly ports: AudiencePorts
  /**
   * Returns true once this owner has begun to leave the unit. In that case, nothing more may be started, and
   * records that arrive have to be left to the next owner.
   */
  readonly isEnding: () => boolean
  /** Adds a purge to the queue, for a later turn. */
  readonly enqueuePurge: (purge: Purge) => void
  /**
   * Reads the last acknowledged entry of each key, in a later turn. Resolves with `undefined` for all keys if
   * this owner has begun to leave the unit.
   */
  readonly readAcknowledged: (keys: readonly string[]) => Promise<readonly (Entry | undefined)[]>
  /** Ends the program, because the state of the unit can't be kept correctly any more. */
  readonly fail: (error: unknown) => void
}
