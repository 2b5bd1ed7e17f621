import type { LogKind, LogRecord } from './log-record.ts'

/** A filter for records. A record must match everything that is given. */
export type LogFilter = {
  /** The start of the time range, in epoch milliseconds. `toMs`: its end, exclusive. */
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
  /** True for only attempts that did not deliver, and deliveries that are dead. */
  readonly onlyFailed?: boolean | undefined
}

export type LogPage = {
  readonly records: readonly LogRecord[]
  /** The place where the next page begins; absent after the last page. */
  readonly cursor?: string | undefined
}

export type MinuteCount = {
  /** The start of the minute, in epoch milliseconds. */
  readonly minuteMs: number
  readonly kind: LogKind
  readonly verdict: string
  readonly reason: string
  /** The number of deliveries, by the weights of their records. */
  readonly count: number
}

/** The durations of a minute's attempts: within 6 % from SQLite's files, exact from ClickHouse. */
export type MinutePercentiles = {
  readonly minuteMs: number
  readonly count: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
}

export type LogStatus = {
  /**
   * The time of the oldest record, in epoch milliseconds; 0 when there is none. `newestMs`: that of the
   * newest.
   */
  readonly oldestMs: number
  readonly newestMs: number
  /** The number of rows. ClickHouse counts rows that were written twice until it has merged them. */
  readonly rows: number
  /**
   * The age of the last indexed block, in milliseconds. 0 when the index has reached the end of the topic, -1
   * when that isn't known.
   */
  readonly behindMs: number
}

/** Options of a question. `signal`: aborted when nobody waits for the answer any more. */
export type Asking = { readonly signal?: AbortSignal | undefined }

/** Queries of the delivery log. All reject with a `QueryTooLongError` when an answer takes too long. */
export type LogQuery = {
  /** Returns all records of a message, oldest first; at most a few thousand. */
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

/** Thrown when the index can't be asked: it can't be reached, refuses, or answers with an error. */
export class QueryFailedError extends Error {
  override readonly name = 'QueryFailedError'
}

/** Thrown when a question takes too long. The message says what to ask for instead. */
export class QueryTooLongError extends Error {
  override readonly name = 'QueryTooLongError'
}

/** Thrown when a question failed by a bug of Sluice, reported by the process or thread that answers it. */
export class QueryFaultError extends Error {
  override readonly name = 'QueryFaultError'
}

/** Returns true if an error is a bug of Sluice, and not an index that can't be read or reached. */
export function isQueryFault(error: unknown): boolean {
  if (error instanceof QueryFaultError || error instanceof ReferenceError) return true
  // `fetch` throws a TypeError too, with what happened to the connection as its cause.
  return (error instanceof TypeError || error instanceof RangeError) && error.cause === undefined
}
