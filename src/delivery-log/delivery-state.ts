import type { LogKind, LogRecord } from './log-record.ts'

/**
 * The states that a delivery can have according to the delivery log. A state says how the delivery ended, or
 * what happens next.
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
 * time. A replay starts a delivery from the beginning. So only the records since the latest replay are used,
 * or all records if there was no replay. The result's `dueMs` is the time when a waiting delivery is tried
 * again, and 0 for all other deliveries.
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
