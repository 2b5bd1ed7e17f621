import type { HeldState, StatesPage, StatesQuery } from '../audience/states-page.ts'
import type { Connections } from './connections.ts'
import type { MarkKeeper } from './mark-keeper.ts'
import type { Connection } from './marks.ts'

export type FirstSyncOptions = {
  /** False: what is connected later is marked, and left out. */
  readonly isWanted: boolean
  /** Identifies a second for one destination, by all workers together. */
  readonly perSecond: number
  /** How many units there are. */
  readonly partitions: number
  /** The catalog in force. */
  readonly catalog: () => Connections
  readonly marks: Pick<MarkKeeper, 'marks' | 'position' | 'tell' | 'needsBackfill'>
  /** Reads the log of marks to its end. Throws where Kafka doesn't answer. */
  readonly readMarks: () => Promise<void>
  /** `undefined`: the unit isn't ours any more. */
  readonly statesOf: (unit: number, query: StatesQuery) => Promise<StatesPage | undefined>
  /** Resolves once Kafka has them all. */
  readonly send: (unit: number, connection: Connection, states: readonly HeldState[]) => Promise<void>
  readonly observer: FirstSyncObserver
}

export type FirstSyncObserver = {
  /** Units and states of this worker. */
  begun(connection: Connection, report: { readonly units: number; readonly left: number }): void
  sent(connection: Connection, count: number): void
  /** The units of this worker are done. `isComplete`: those of all others are too, as far as it knows. */
  ended(
    connection: Connection,
    report: { readonly sent: number; readonly tookMs: number; readonly isComplete: boolean },
  ): void
  /** The destination was switched off, removed or disconnected before it was told all. */
  stopped(connection: Connection): void
  /** It was connected later, and isn't told, since that isn't wanted. */
  leftOut(connection: Connection): void
  /** It is tried again. */
  failed(error: unknown): void
}

/**
 * Of one connection, as far as the units of this worker go. `waiting`: for the destination, or the space, to
 * be on.
 */
export type FirstSyncProgress = Connection & {
  readonly state: 'waiting' | 'under_way'
  /** Identifies still to be written; not those of units that are being counted. */
  readonly left: number
}
