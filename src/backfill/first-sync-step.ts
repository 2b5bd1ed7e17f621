import type { ConnectionState } from './connections.ts'
import type { Standing } from './standing.ts'

/**
 * What the owner of a unit does about a connection. `assume_told`: it was there before anybody wrote down how
 * it stands. `note_new`: it wasn't, and from here on the destination is told what changes. `part`: from here
 * on it isn't. `sync` and `go_on`: the destination is told what the unit holds, from the first state or from
 * where it was.
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
  /** What was written last of the connection and the unit. */
  readonly standing: Standing | undefined
  /** Whether the owners of the unit write how connections stand. */
  readonly isTracked: boolean
  /** Whether no unit has still something to tell. */
  readonly isComplete: () => boolean
  /** The setting. */
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
      return connectionState === 'paused' ? 'wait' : 'go_on'
    case 'told':
      // It misses something before all units have told it all: they begin anew together, so that they make up
      // for that too.
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
