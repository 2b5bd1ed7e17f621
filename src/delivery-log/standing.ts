import type { LogKind, LogRecord } from './log-record.ts'

/** Where a delivery stands: how it ended, or what is to come. */
export const standings = [
  'delivered',
  'dead',
  'superseded',
  'suppressed',
  'omitted',
  'filtered',
  'waiting',
  'under_way',
] as const
export type Standing = (typeof standings)[number]

/**
 * By what the log has of one delivery, in the order of time. `dueMs`: when it is tried again, where it waits
 * for that; else 0.
 */
export function standingOf(records: readonly LogRecord[]): { standing: Standing; dueMs: number } {
  const end = records.findLast(({ isEnd }) => isEnd)
  if (end !== undefined) return { standing: endOf(end.kind), dueMs: 0 }
  const last = records.at(-1)
  if (last?.kind === 'parked') return { standing: 'waiting', dueMs: last.dueMs }
  return { standing: 'under_way', dueMs: 0 }
}

function endOf(kind: LogKind): Standing {
  return kind === 'attempted' || kind === 'parked' ? 'delivered' : kind
}
