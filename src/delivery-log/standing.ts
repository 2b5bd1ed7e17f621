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
 * Returns where a delivery stands, by what the log has of it in the order of time. A replay begins it anew:
 * only the records of the replay that began last count, or all where there was none. `dueMs`: when it
 * is tried again, where it waits for that; else 0.
 */
export function standingOf(records: readonly LogRecord[]): { standing: Standing; dueMs: number } {
  const newest = [...Map.groupBy(records, ({ job }) => job).values()].at(-1) ?? []
  const end = newest.findLast(({ isEnd }) => isEnd)
  if (end !== undefined) return { standing: endOf(end.kind), dueMs: 0 }
  const last = newest.at(-1)
  if (last?.kind === 'parked') return { standing: 'waiting', dueMs: last.dueMs }
  return { standing: 'under_way', dueMs: 0 }
}

function endOf(kind: LogKind): Standing {
  return kind === 'attempted' || kind === 'parked' ? 'delivered' : kind
}
