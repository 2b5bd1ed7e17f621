import type { LogKind, LogRecord } from './log-record.ts'

/** Which records are asked for: those that fulfil all that is given. */
export type LogFilter = {
  /** Epoch milliseconds: from this one on, and before the other. */
  readonly fromMs: number
  readonly toMs: number
  readonly destination?: string | undefined
  readonly source?: string | undefined
  readonly hook?: string | undefined
  readonly messageId?: string | undefined
  /** A keyed hash, as 12 hex digits. */
  readonly user?: string | undefined
  readonly kinds?: readonly LogKind[] | undefined
  readonly outcome?: string | undefined
  readonly reason?: string | undefined
  readonly status?: number | undefined
  readonly job?: string | undefined
  /** Attempts that did not deliver, and deliveries that are dead. */
  readonly onlyFailed?: boolean | undefined
}

export type LogPage = {
  readonly records: readonly LogRecord[]
  /** Where the next page begins; absent behind the last one. */
  readonly cursor?: string | undefined
}

export type MinuteCount = {
  /** When it begins, in epoch milliseconds. */
  readonly minuteMs: number
  readonly kind: LogKind
  readonly verdict: string
  readonly reason: string
  /** Deliveries, by the weights of their records. */
  readonly count: number
}

/** How long the attempts of a minute took: within 6 % by files of SQLite, exactly by ClickHouse. */
export type MinutePercentiles = {
  readonly minuteMs: number
  readonly count: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
}

export type LogStatus = {
  /** Of the oldest and the newest record, in epoch milliseconds; 0 where there is none. */
  readonly oldestMs: number
  readonly newestMs: number
  /** ClickHouse counts rows that were written a second time until it has merged them. */
  readonly rows: number
  /**
   * How long ago what was indexed last was written to the topic, in milliseconds, while there is more; 0 at
   * its end; -1 where that isn't known.
   */
  readonly behindMs: number
}

/** `signal`: aborted when nobody waits for the answer any more. */
export type Asking = { readonly signal?: AbortSignal | undefined }

/** Asks the delivery log. All of it rejects with a `QueryTooLongError` where an answer takes too long. */
export type LogQuery = {
  /** All that is known of a message, oldest first; at most a few thousand. */
  find(messageId: string, asking?: Asking): Promise<readonly LogRecord[]>
  /** Newest first. `limit`: 1 to 1,000. Rejects with a `BadCursorError` where the cursor is of no page. */
  search(
    filter: LogFilter,
    page: { readonly limit: number; readonly cursor?: string | undefined },
    asking?: Asking,
  ): Promise<LogPage>
  /** Ascending. */
  counts(filter: LogFilter, asking?: Asking): Promise<readonly MinuteCount[]>
  /** Ascending. */
  percentiles(filter: LogFilter, asking?: Asking): Promise<readonly MinutePercentiles[]>
  status(): Promise<LogStatus>
  close(): Promise<void>
}

export class BadCursorError extends Error {
  override readonly name = 'BadCursorError'
}

/** What is to answer can't be asked: it isn't there, refuses, or says what is wrong. */
export class QueryFailedError extends Error {
  override readonly name = 'QueryFailedError'
}

/** A question took longer than it may: the message says what to ask for instead. */
export class QueryTooLongError extends Error {
  override readonly name = 'QueryTooLongError'
}

/** A question failed by a fault of Sluice, told by a process or thread that answers it. */
export class QueryFaultError extends Error {
  override readonly name = 'QueryFaultError'
}

/** Tells a fault of Sluice from an index that can't be read, or reached. */
export function isQueryFault(error: unknown): boolean {
  if (error instanceof QueryFaultError || error instanceof ReferenceError) return true
  // `fetch` throws a TypeError too, with what happened to the connection as its cause.
  return (error instanceof TypeError || error instanceof RangeError) && error.cause === undefined
}
