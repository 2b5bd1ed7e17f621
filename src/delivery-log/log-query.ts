import type { LogKind, LogRecord } from './log-record.ts'

/** A filter for records. A record must match all given fields. */
export type LogFilter = {
  /** The start of the time range, in epoch milliseconds. `toMs`: the end of the range, exclusive. */
  readonly fromMs: number
  readonly toMs: number
  readonly destination?: string | undefined
  readonly source?: string | undefined
  readonly hook?: string | undefined
  readonly messageId?: string | undefined
  /** The keyed hash of a user, as 12 hex digits. */
  readonly user?: string | undefined
  readonly kinds?: readonly LogKind[] | undefined
  readonly outcome?: string | undefined
  readonly reason?: string | undefined
  readonly status?: number | undefined
  readonly job?: string | undefined
  /** True if only failed attempts and dead letters are wanted. */
  readonly onlyFailed?: boolean | undefined
}

export type LogPage = {
  readonly records: readonly LogRecord[]
  /** The place where the next page begins; absent on the last page. */
  readonly cursor?: string | undefined
}

export type MinuteCount = {
  /** The start of the minute, in epoch milliseconds. */
  readonly minuteMs: number
  readonly kind: LogKind
  readonly verdict: string
  readonly reason: string
  /** The sum of the weights of the records: for each record, how many deliveries it stands for. */
  readonly count: number
}

/**
 * The percentiles of the durations of a minute's attempts. The index in SQLite is exact within 6 %,
 * ClickHouse within a tenth of a millisecond.
 */
export type MinutePercentiles = {
  readonly minuteMs: number
  readonly count: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
}

export type LogStatus = {
  /**
   * The time of the oldest record, in epoch milliseconds. `newestMs`: the time of the newest record. Both are
   * 0 if there is no record.
   */
  readonly oldestMs: number
  readonly newestMs: number
  /**
   * The number of rows. ClickHouse counts a row that was written twice as two rows, until it has merged them.
   */
  readonly rows: number
  /**
   * The age of the last indexed block, in milliseconds; 0 if the index has reached the end of the topic. -1
   * if the age isn't known.
   */
  readonly behindMs: number
}

/** Options of a question. `signal` is aborted when nobody waits for the answer any more. */
export type Asking = { readonly signal?: AbortSignal | undefined }

/**
 * Queries of the delivery log. When an answer takes too long, the index in SQLite rejects with a
 * `QueryTooLongError`, and ClickHouse with a `QueryFailedError`.
 */
export type LogQuery = {
  /** Returns the records of a message, oldest first. Returns at most the newest 10,000. */
  find(messageId: string, asking?: Asking): Promise<readonly LogRecord[]>
  /**
   * Returns a page of records, newest first. `limit`: 1 to 1,000. Rejects with a `BadCursorError` if the
   * cursor isn't one of this log.
   */
  search(
    filter: LogFilter,
    page: { readonly limit: number; readonly cursor?: string | undefined },
    asking?: Asking,
  ): Promise<LogPage>
  /** Returns counts per minute, ascending. */
  counts(filter: LogFilter, asking?: Asking): Promise<readonly MinuteCount[]>
  /** Returns percentiles per minute, ascending. */
  percentiles(filter: LogFilter, asking?: Asking): Promise<readonly MinutePercentiles[]>
  status(): Promise<LogStatus>
  close(): Promise<void>
}

export class BadCursorError extends Error {
  override readonly name = 'BadCursorError'
}

/**
 * Thrown when the index can't be queried: it can't be reached, refuses the query, or answers with an error.
 */
export class QueryFailedError extends Error {
  override readonly name = 'QueryFailedError'
}

/** Thrown when a question takes too long. The message says what to ask for instead. */
export class QueryTooLongError extends Error {
  override readonly name = 'QueryTooLongError'
}

/**
 * Thrown when a question failed because of a bug of Sluice. The process or thread that answers the question
 * reports the bug.
 */
export class QueryFaultError extends Error {
  override readonly name = 'QueryFaultError'
}

/**
 * Returns true if an error comes from a bug of Sluice. Returns false if it comes from an index that can't be
 * read or reached.
 */
export function isQueryFault(error: unknown): boolean {
  if (error instanceof QueryFaultError || error instanceof ReferenceError) return true
  // `fetch` throws a TypeError too, but with a `cause`: the error of the connection.
  return (error instanceof TypeError || error instanceof RangeError) && error.cause === undefined
}
