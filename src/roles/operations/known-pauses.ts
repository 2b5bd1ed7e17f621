import { isPauseInForce, mayBeGone } from '../../catalog/auto-pause.ts'
import type { Destination } from '../../catalog/catalog.ts'
import type { Config } from '../../config/schema.ts'
import { hookContentsOf } from '../../delivery/hook-content.ts'
import type { Pause } from '../../notices/pause-record.ts'
import { autoPauseTermsOf } from '../start/settings.ts'
import type { GoneByDestination, PausedDestination } from './pause-desk.ts'
import type { DeskAnswer } from './replay-desk.ts'

/** Tells which destinations Sluice has paused. */
export type Pauses = {
  /** False if this can't be found out, because there is no topic of notices, or no right to read it. */
  readonly areKnown: boolean
  has(destination: Destination): boolean
  /** Returns the ids of the destination's hooks that have answered 410 (Gone), and so get no requests. */
  goneHooks(destination: Destination): readonly string[]
  /** Returns the pause of a destination, whether workers honour it or not. */
  pauseOf(destinationId: string): Pause | undefined
}

/** Returns the pauses and gone hooks that workers honour, from what the desk knows. */
export function pausesOf(
  paused: DeskAnswer<readonly PausedDestination[]>,
  gone: DeskAnswer<GoneByDestination>,
  config: Config,
): Pauses {
  if (!paused.ok || !gone.ok) return unknownPauses
  const terms = autoPauseTermsOf(config)
  const pauses = new Map(paused.value.map(({ destinationId, pause }) => [destinationId, pause]))
  function goneHooks(destination: Destination): readonly string[] {
    const records = gone.ok && mayBeGone(destination, terms) ? gone.value.get(destination.id) : undefined
    if (records === undefined) return []
    const contents = hookContentsOf(destination)
    return [...records].flatMap(([id, { content }]) => (contents.get(id) === content ? [id] : []))
  }
  return {
    areKnown: true,
    has(destination) {
      const pause = pauses.get(destination.id)
      const isPaused = pause !== undefined && isPauseInForce(destination, pause, terms)
      return isPaused || goneHooks(destination).length === destination.hooks.length
    },
    goneHooks,
    pauseOf: (destinationId) => pauses.get(destinationId),
  }
}

const unknownPauses: Pauses = {
  areKnown: false,
  has: () => false,
  goneHooks: () => [],
  pauseOf: () => undefined,
}
