import type { DestinationState } from '../../catalog/catalog.ts'
import type { DestinationHealth } from '../../health/health-board.ts'
import type { KnownHealth } from './health-reading.ts'
import { timeOf } from './pause-desk.ts'

const unknown: DestinationHealth = {
  messages: undefined,
  replayed: undefined,
  oldestMs: undefined,
  drainMs: undefined,
  inFlight: undefined,
  perSecond: undefined,
  isLowered: false,
}

/** Returns what is known of a destination. What waits of a destination that isn't on is never sent. */
function healthOf(
  { board, nowMs }: KnownHealth,
  destinationId: string,
  state: DestinationState,
): DestinationHealth {
  const known = board?.of(destinationId, nowMs) ?? unknown
  return state === 'on' || known.messages === 0 ? known : { ...known, drainMs: undefined }
}

/**
 * Returns the health of a destination as the HTTP API and `--json` show it. What isn't known is null, and
 * never 0.
 */
export function healthData(known: KnownHealth, destinationId: string, state: DestinationState) {
  const { messages, oldestMs, drainMs, inFlight, perSecond, isLowered } = healthOf(
    known,
    destinationId,
    state,
  )
  const asOfMs = known.board?.asOfMs(known.nowMs)
  return {
    asOf: asOfMs === undefined ? null : timeOf(asOfMs),
    waiting: messages ?? null,
    oldestWaitingSince: oldestMs === undefined ? null : timeOf(oldestMs),
    drainedInSeconds: drainMs === undefined ? null : Math.ceil(drainMs / 1_000),
    inFlightLimit: inFlight ?? null,
    perSecondLimit: perSecond ?? null,
    isLimitLowered: inFlight === undefined ? null : isLowered,
  }
}

/** The headings of `healthCells`. */
export const healthHeadings = ['waiting', 'oldest', 'sent in', 'takes'] as const

/** Returns the health of a destination in cells of a table. A `?` stands for what isn't known. */
export function healthCells(
  known: KnownHealth,
  destinationId: string,
  state: DestinationState,
): readonly string[] {
  const health = healthOf(known, destinationId, state)
  const { messages, oldestMs, drainMs } = health
  const waits = messages !== undefined && messages > 0
  return [
    messages === undefined ? '?' : String(messages),
    waits ? ageOf(oldestMs, known.nowMs) : '',
    waits && state === 'on' ? aboutOf(drainMs) : '',
    limitOf(health),
  ]
}

function ageOf(sinceMs: number | undefined, nowMs: number): string {
  return sinceMs === undefined ? '?' : roughly(nowMs - sinceMs)
}

function aboutOf(ms: number | undefined): string {
  return ms === undefined ? '?' : roughly(ms)
}

/** Says how much an endpoint takes at present, if it is less than it could get. */
function limitOf({ inFlight, perSecond, isLowered }: DestinationHealth): string {
  if (perSecond !== undefined) return `${Number(perSecond.toPrecision(2))}/s`
  return isLowered && inFlight !== undefined ? `${inFlight} at once` : ''
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
