import type { DestinationState } from '../../catalog/catalog.ts'
import type { DestinationHealth } from '../../health/health-board.ts'
import type { KnownHealth } from './health-reading.ts'

const unknown: DestinationHealth = {
  messages: undefined,
  replayed: undefined,
  retrying: undefined,
  retryingAtMost: undefined,
  oldestMs: undefined,
  drainMs: undefined,
  inFlight: undefined,
  perSecond: undefined,
  isLowered: false,
}

/** Returns what workers have told of a destination. */
export function toldOf({ board, nowMs }: KnownHealth, destinationId: string): DestinationHealth {
  return board?.of(destinationId, nowMs) ?? unknown
}

/** Returns what is known of a destination. What waits of a destination that isn't on is never sent. */
export function healthOf(
  known: KnownHealth,
  destinationId: string,
  state: DestinationState,
): DestinationHealth {
  const told = toldOf(known, destinationId)
  return state === 'on' || told.messages === 0 ? told : { ...told, drainMs: undefined }
}

const steps = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
] as const

/** Formats a time span roughly, such as `40 s`, `12 m`, `3 h` or `2 d`. */
export function roughly(ms: number): string {
  for (const [unit, unitMs] of steps) if (ms >= 2 * unitMs) return `${Math.round(ms / unitMs)} ${unit}`
  return `${Math.max(0, Math.ceil(ms / 1_000))} s`
}
