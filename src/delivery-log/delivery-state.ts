import type { LogKind, LogRecord } from './log-record.ts'

/** How a delivery is by its log: how it ended, or what is to come. */
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
 * By what the log has of one delivery, in the order of time. `dueMs`: when it is tried again, where it waits
 * for that; else 0.
 */
export function deliveryStateOf(records: readonly LogRecord[]): { state: DeliveryState; dueMs: number } {
  const end = records.findLast(({ isEnd }) => isEnd)
  if (end !== undefined) return { state: endOf(end.kind), dueMs: 0 }
  const last = records.at(-1)
  if (last?.kind === 'parked') return { state: 'waiting', dueMs: last.dueMs }
  return { state: 'under_way', dueMs: 0 }
}

function endOf(kind: LogKind): DeliveryState {
  return kind === 'attempted' || kind === 'parked' ? 'delivered' : kind
}
