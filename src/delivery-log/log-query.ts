import type { Grouping, Groups } from './groups.ts'
import type { LogKind, LogRecord } from './log-record.ts'

/** A filter for records. A record must match all given fields. */
export type LogFilter = {
  /**
   * `fromMs`: the start of the time range, in epoch milliseconds. `toMs`: the end of the time range, which
   * isn't included.
   */
  readonly fromMs: number
  readonly toMs: number
  readonly destination?: string | undefined
  /** A record must be of one of these destinations: 1 to 10,000. */
  readonly destinations?: readonly string[] | undefined
  readonly source?: string | undefined
  readonly hook?: string | undefined
  readonly messageId?: string | undefined
  /** The keyed hash of a user, as 12 hex digits. */
  readonly user?: string | undefined
  /** The keyed hash of an indexed value of the message, as 12 hex digits. */
  readonly value?: string | undefined
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
  /** The place at which the next page begins; absent on the last page. */
  readonly cursor?: string | undefined
}

export type MinuteCount = {
  /** The start of the minute, in epoch milliseconds. */
  readonly minuteMs: number
  readonly kind: LogKind
  readonly verdict: string
  readonly reason: string
  /** The number of deliveries that the records stand for, which is the sum of the records' weights. */
  readonly count: number
}

/**
 * The percentiles of the durations of all attempts in a minute. The values from SQLite are exact within 6 %.
 * The values from ClickHouse are exact within a tenth of a millisecond.
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
   * `oldestMs`: the time of the oldest record, in epoch milliseconds. `newestMs`: the time of the newest
   * record. Both are 0 if there is no record.
   */
  readonly oldestMs: number
  readonly newestMs: number
  /**
   * The number of rows. If a row was written twice to ClickHouse, it counts as two rows until ClickHouse has
   * merged them.
   */
  readonly rows: number
  /**
   * The age of the last indexed block, in milliseconds. It is 0 if the index has reached the end of the
   * topic, and -1 if the age isn't known.
   */
  readonly behindMs: number
}

/** Options of a query. `signal` is aborted when the caller doesn't wait for the answer any more. */
export type Asking = { readonly signal?: AbortSignal | undefined }

/**
 * Queries of the delivery log. If an answer takes too long, a query of SQLite rejects with a
 * `QueryTooLongError`, and a query of ClickHouse rejects with a `QueryFailedError`.
 */
export type LogQuery = {
  /**
   * Resolves with the newest records of a message, oldest first: 10,000 of them at most, and fewer if they
   * have more than about 2 MB of text.
   */
  find(messageId: string, asking?: Asking): Promise<readonly LogRecord[]>
  /**
   * Resolves with a page of records, newest first. `limit`: 1 to 1,000. The page ends earlier, with a cursor,
   * if its records have more than about 2 MB of text. If the cursor doesn't come from this
   * log, rejects with a `BadCursorError`.
   */
  search(
    filter: LogFilter,
    page: { readonly limit: number; readonly cursor?: string | undefined },
    asking?: Asking,
  ): Promise<LogPage>
  /** Resolves with the counts of each minute, in the order of time. */
  counts(filter: LogFilter, asking?: Asking): Promise<readonly MinuteCount[]>
  /** Resolves with the percentiles of each minute, in the order of time. */
  percentiles(filter: LogFilter, asking?: Asking): Promise<readonly MinutePercentiles[]>
  /** Resolves with the counts of each step and group. The filter must have at most `mostSteps` steps. */
  groups(filter: LogFilter, grouping: Grouping, asking?: Asking): Promise<Groups>
  status(): Promise<LogStatus>
  close(): Promise<void>
}

/**
 * Limit on the text in the records of one answer, in characters. The last piece of an answer may exceed it.
 */
export const maxTextOfAnswer = 2 * 1_024 * 1_024

/** Returns the number of characters in a record that may have a lot of text. */
export function textOf({ destination, hook, messageId, reason, error, answer }: LogRecord): number {
  const names = destination.length + hook.length + messageId.length
  // Each record has about 600 more characters: the names of its fields, numbers and times.
  return 600 + names + reason.length + error.length + answer.length
}

export class BadCursorError extends Error {
  override readonly name = 'BadCursorError'
}

/** Thrown when the index can't be reached, refuses a query, or answers a query with an error. */
export class QueryFailedError extends Error {
  override readonly name = 'QueryFailedError'
}

/** Thrown when an index refuses a query because it answers many others. */
export class QueryBusyError extends Error {
  override readonly name = 'QueryBusyError'
}

/** Thrown when a query takes too long. The error's message says what to query instead. */
export class QueryTooLongError extends Error {
  override readonly name = 'QueryTooLongError'
}

/**
 * Thrown when a query failed because of a bug in Sluice. The process or thread that runs the query reports
 * the bug.
 */
export class QueryFaultError extends Error {
  override readonly name = 'QueryFaultError'
}

/**
 * Returns true if an error is caused by a bug in Sluice. Returns false if it is caused by an index that can't
 * be read or reached.
 */
export function isQueryFault(error: unknown): boolean {
  if (error instanceof QueryFaultError || error instanceof ReferenceError) return true
  // If a connection fails, `fetch` throws a TypeError too, but that error has a `cause`.
  return (error instanceof TypeError || error instanceof RangeError) && error.cause === undefined
}
