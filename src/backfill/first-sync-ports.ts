import type { HeldState, StatesPage, StatesQuery } from '../audience/store/states-page.ts'
import type { Connections } from './connected-spaces.ts'
import type { MarkKeeper } from './mark-keeper.ts'
import type { Connection } from './marks.ts'

export type FirstSyncOptions = {
  /**
   * False if first syncs are off. In that case, a destination that is connected later gets a mark and no
   * first sync.
   */
  readonly isWanted: boolean
  /** The number of Identifies per second that all workers together may send to one destination. */
  readonly perSecond: number
  /** The number of units. */
  readonly partitions: number
  readonly catalog: () => Connections
  readonly marks: Pick<MarkKeeper, 'marks' | 'position' | 'tell' | 'needsBackfill'>
  /** Reads `backfills` to its end. Rejects if Kafka doesn't answer. */
  readonly readMarks: () => Promise<void>
  /** Reads a page of states. Resolves with `undefined` if this worker doesn't own the unit any more. */
  readonly statesOf: (unit: number, query: StatesQuery) => Promise<StatesPage | undefined>
  /**
   * Writes the Identifies of the states to `replays`. Resolves once Kafka has all of them. An Identify that
   * is too large isn't written, and the destination gets a mark instead.
   */
  readonly send: (unit: number, connection: Connection, states: readonly HeldState[]) => Promise<void>
  /**
   * Returns how many Identifies of first syncs and records of replays wait for a destination in the queues of
   * this worker's units.
   */
  readonly backlogOf: (destinationId: string) => number
  readonly observer: FirstSyncObserver
}

export type FirstSyncObserver = {
  /** Called when a first sync starts. `report` covers only this worker's units and states. */
  begun(connection: Connection, report: { readonly units: number; readonly left: number }): void
  sent(connection: Connection, count: number): void
  /**
   * Called when the first sync has ended for all units of this worker. `isComplete`: true if this worker
   * knows that the first sync has also ended for all other units.
   */
  ended(
    connection: Connection,
    report: { readonly sent: number; readonly tookMs: number; readonly isComplete: boolean },
  ): void
  /**
   * Called when the destination was switched off, removed or disconnected before the first sync was complete.
   */
  stopped(connection: Connection): void
  /**
   * Called for a destination that was connected later and gets no first sync, because first syncs are off.
   */
  leftOut(connection: Connection): void
  /** Called when a step has failed. The step is tried again. */
  failed(error: unknown): void
}

/**
 * The progress of one connection's first sync, for the units of this worker. `waiting`: the first sync starts
 * once both the destination and the space are on.
 */
export type FirstSyncProgress = Connection & {
  readonly state: 'waiting' | 'under_way'
  /**
   * The number of Identifies that are still to be written. While the states of a unit are being counted, only
   * the states that were counted so far are included.
   */
  readonly left: number
}
