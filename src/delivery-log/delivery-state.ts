import type { LogKind, LogRecord } from './log-record.ts'

/**
 * The states that a delivery can have in the delivery log. A state says how the delivery ended, or what
 * happens to it next.
 */
export const deliveryStates = [
  'delivered',
  'dead',
  'superseded',
  'suppressed',
  'omitted',
  'filtered',
  'waiting',
  'under_way',
] as const
export type DeliveryState = (typeof deliveryStates)[number]

/**
 * Returns the state of a delivery. `records` are the delivery's records in the delivery log, in the order of
 * time. If there was a replay, only the records since the latest replay are used, because a replay starts the
 * delivery from the beginning. If the delivery waits, `dueMs` is the time when it is tried again. Otherwise
 * `dueMs` is 0.
 */
export function deliveryStateOf(records: readonly LogRecord[]): { state: DeliveryState; dueMs: number } {
  const newest = [...Map.groupBy(records, ({ job }) => job).values()].at(-1) ?? []
  const end = newest.findLast(({ isEnd }) => isEnd)
  if (end !== undefined) return { state: endOf(end.kind), dueMs: 0 }
  const last = newest.at(-1)
  if (last?.kind === 'parked') return { state: 'waiting', dueMs: last.dueMs }
  return { state: 'under_way', dueMs: 0 }
}

function endOf(kind: LogKind): DeliveryState {
  return kind === 'attempted' || kind === 'parked' ? 'delivered' : kind
}
