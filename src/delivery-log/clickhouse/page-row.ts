import { dueMsOf, logKinds, type LogKind, logOutcomes, type LogRecord, logVerdicts } from '../log-record.ts'
import type { RowPlace } from './query-sql.ts'
import { columns, type ColumnName } from './tables.ts'

export type ReadRow = { readonly record: LogRecord; readonly place: RowPlace }

const indexes = new Map<ColumnName, number>(columns.map(([name], index) => [name, index]))

/** Decodes a row of `pageSql`. */
export function readRow(row: readonly unknown[]): ReadRow {
  const text = (name: ColumnName): string => String(row[indexes.get(name) ?? -1])
  const int = (name: ColumnName): number => Number(row[indexes.get(name) ?? -1])
  const atMs = int('at')
  const kind = kindIn(text('kind'))
  const record: LogRecord = {
    atMs,
    kind,
    isEnd: row[indexes.get('is_end') ?? -1] === true,
    weight: int('weight'),
    destination: text('destination'),
    hook: text('hook'),
    source: text('source'),
    messageId: text('message_id'),
    messageType: text('message_type'),
    origin: {
      topic: text('origin_topic'),
      partition: int('origin_partition'),
      offset: int('origin_offset'),
    },
    unit: int('unit'),
    attempt: int('attempt'),
    verdict: wordIn(logVerdicts, text('verdict'), ''),
    outcome: wordIn(logOutcomes, text('outcome'), ''),
    status: int('status'),
    durationMs: int('duration_us') / 1_000,
    reason: text('reason'),
    error: text('error'),
    dueMs: dueMsOf(kind, atMs, int('wait_ms')),
    firstSeenMs: atMs - int('age_ms'),
    user: text('user'),
    job: text('job'),
    answer: text('answer'),
  }
  return { record, place: { atMs, unit: record.unit, offset: int('offset'), number: int('number') } }
}

/**
 * Returns the kind of record with the name `word`. A later version of Sluice may have added kinds. For an
 * unknown word, returns the first kind, like `kindOf` in `block-reader.ts`.
 */
export function kindIn(word: unknown): LogKind {
  return wordIn(logKinds, word, 'attempted')
}

function wordIn<T extends string>(words: readonly T[], word: unknown, other: T): T {
  return words.find((known) => known === word) ?? other
}
