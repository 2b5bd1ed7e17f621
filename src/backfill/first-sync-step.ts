import type { ConnectionState } from './connected-spaces.ts'
import type { Standing } from './standing.ts'

/**
 * The step that the owner of a unit takes for a connection.
 * - `assume_told`: the connection is older than the first record of standings, so its standing is set to
 *   `told`.
 * - `note_new`: the connection is new. From now on, the destination gets changes.
 * - `part`: from now on, the destination gets no changes.
 * - `leave_out`: first syncs are off. Mark the destination, and send it only changes.
 * - `wait`: send no state before both the destination and the space are on.
 * - `sync`: send the destination all states of the unit, from the first.
 * - `go_on`: continue the first sync after the last state that was sent.
 */
export type FirstSyncStep =
  | 'nothing'
  | 'assume_told'
  | 'note_new'
  | 'part'
  | 'leave_out'
  | 'wait'
  | { readonly kind: 'sync'; readonly withLeft: boolean }
  | 'go_on'

export type FirstSyncSituation = {
  readonly connectionState: ConnectionState
  /** The standing that was last written for the connection and the unit. */
  readonly standing: Standing | undefined
  /**
   * True if owners of the unit have already written the standings of connections. In that case, a connection
   * without a standing is new.
   */
  readonly isTracked: boolean
  /** Returns true if no unit still has states to send. */
  readonly isComplete: () => boolean
  readonly isWanted: boolean
}

export function firstSyncStep(situation: FirstSyncSituation): FirstSyncStep {
  const { connectionState, standing, isTracked, isComplete, isWanted } = situation
  if (connectionState === 'none')
    return standing === undefined || standing.kind === 'parted' ? 'nothing' : 'part'
  switch (standing?.kind) {
    case undefined:
      if (!isTracked) return 'assume_told'
      return isWanted ? 'note_new' : 'leave_out'
    case 'new':
      return begin(connectionState, isWanted, false)
    case 'parted':
      return begin(connectionState, isWanted, true)
    case 'syncing':
      if (connectionState === 'off') return 'part'
      if (!isWanted) return 'leave_out'
      return connectionState === 'on' ? 'go_on' : 'wait'
    case 'told':
      // The destination was switched off before all units had sent it their states, so it misses changes now.
      // Later, all units begin again together. This makes up for the missed changes too.
      return connectionState === 'off' && standing.upTo > 0 && !isComplete() ? 'part' : 'nothing'
    case 'left_out':
      return 'nothing'
  }
}

function begin(
  connectionState: Exclude<ConnectionState, 'none'>,
  isWanted: boolean,
  withLeft: boolean,
): FirstSyncStep {
  if (!isWanted) return 'leave_out'
  return connectionState === 'on' ? { kind: 'sync', withLeft } : 'wait'
}
