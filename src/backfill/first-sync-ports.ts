import type { HeldState, StatesPage, StatesQuery } from '../audience/states-page.ts'
import type { Connections } from './connections.ts'
import type { MarkKeeper } from './mark-keeper.ts'
import type { Connection } from './marks.ts'

export type FirstSyncOptions = {
  /** False if first syncs are off. A destination that is connected later is then marked, and left out. */
  readonly isWanted: boolean
  /** The limit on Identifies a second for one destination, by all workers together. */
  readonly perSecond: number
  /** The number of units. */
  readonly partitions: number
  /** Returns the catalog in force. */
  readonly catalog: () => Connections
  readonly marks: Pick<MarkKeeper, 'marks' | 'position' | 'tell' | 'needsBackfill'>
  /** Reads the log of marks to its end. Throws if Kafka doesn't answer. */
  readonly readMarks: () => Promise<void>
  /** Reads a page of states; `undefined` if the unit isn't this worker's any more. */
  readonly statesOf: (unit: number, query: StatesQuery) => Promise<StatesPage | undefined>
  /** Writes the states to `replays`. Resolves once Kafka has all of them. */
  readonly send: (unit: number, connection: Connection, states: readonly HeldState[]) => Promise<void>
  readonly observer: FirstSyncObserver
}

export type FirstSyncObserver = {
  /** Called when a first sync starts. The report counts units and states of this worker only. */
  begun(connection: Connection, report: { readonly units: number; readonly left: number }): void
  sent(connection: Connection, count: number): void
  /**
   * Called when the units of this worker are done. `isComplete`: as far as is known here, all other units are
   * done too.
   */
  ended(
    connection: Connection,
    report: { readonly sent: number; readonly tookMs: number; readonly isComplete: boolean },
  ): void
  /** Called when the destination was switched off, removed or disconnected before it was sent everything. */
  stopped(connection: Connection): void
  /**
   * Called for a destination that was connected later and gets no first sync, because first syncs are off.
   */
  leftOut(connection: Connection): void
  /** Called when a step has failed. The step is tried again. */
  failed(error: unknown): void
}

/**
 * The progress of one connection, for the units of this worker. `waiting`: the first sync starts once both
 * the destination and the space are on.
 */
export type FirstSyncProgress = Connection & {
  readonly state: 'waiting' | 'under_way'
  /** The number of Identifies still to be written. Units that are still being counted are left out. */
  readonly left: number
}
