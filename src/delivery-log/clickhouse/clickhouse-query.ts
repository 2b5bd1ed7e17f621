import {
  type Asking,
  type LogFilter,
  type LogPage,
  type LogQuery,
  type LogStatus,
  maxTextOfAnswer,
  type MinuteCount,
  type MinutePercentiles,
  textOf,
} from '../log-query.ts'
import { type Grouping, groupOf, type Groups, GroupSums } from '../groups.ts'
import type { LogRecord } from '../log-record.ts'
import type { ClickHouse } from './connect-clickhouse.ts'
import {
  countsSql,
  groupsSql,
  cursorOf,
  pageSql,
  percentilesSql,
  type RowPlace,
  placeOf,
  statusSql,
} from './query-sql.ts'
import { kindIn, type ReadRow, readRow } from './page-row.ts'
import type { Tables } from './tables.ts'

export type ClickHouseQueryOptions = {
  readonly clickHouse: ClickHouse
  readonly tables: Tables
  /** Returns how far the index is behind the topic, in milliseconds. Returns -1 if this isn't known. */
  readonly behindMs: () => number
}

/** Limit on the records that are returned for one message. */
const maxFound = 10_000
/**
 * The length of the first time span that a query reads, in milliseconds, if the query names no destination,
 * no message and no user. Such a query reads the newest span first, and then earlier and longer spans.
 */
const firstSpanMs = 3_600_000
const spanGrowth = 8

/** Creates queries of the delivery log's tables. `close` of the result also closes `clickHouse`. */
export function openClickHouseQuery(options: ClickHouseQueryOptions): LogQuery {
  return new ClickHouseQuery(options)
}

class ClickHouseQuery implements LogQuery {
  readonly #options: ClickHouseQueryOptions

  constructor(options: ClickHouseQueryOptions) {
    this.#options = options
  }

  async find(messageId: string, asking?: Asking): Promise<readonly LogRecord[]> {
    const filter = { fromMs: 0, toMs: Infinity, messageId }
    const found = await this.#page(filter, undefined, maxFound, asking)
    return cut(found)
      .map(({ record }) => record)
      .toReversed()
  }

  async search(
    filter: LogFilter,
    { limit, cursor }: { limit: number; cursor?: string | undefined },
    asking?: Asking,
  ): Promise<LogPage> {
    const behind = cursor === undefined ? undefined : placeOf(cursor)
    const found = await this.#newest(filter, behind, limit, asking)
    const rows = cut(found)
    const last = rows.at(-1)
    const isMore = found.length >= limit || rows.length < found.length
    return {
      records: rows.map(({ record }) => record),
      ...(last !== undefined && isMore && { cursor: cursorOf(last.place) }),
    }
  }

  async counts(filter: LogFilter, asking?: Asking): Promise<readonly MinuteCount[]> {
    const { clickHouse, tables } = this.#options
    const rows = await clickHouse.rows(countsSql(tables, filter), asking?.signal)
    return rows.map(([minute, kind, verdict, reason, count]) => ({
      minuteMs: Number(minute) * 1_000,
      kind: kindIn(kind),
      verdict: String(verdict),
      reason: String(reason),
      count: Number(count),
    }))
  }

  async percentiles(filter: LogFilter, asking?: Asking): Promise<readonly MinutePercentiles[]> {
    const { clickHouse, tables } = this.#options
    const rows = await clickHouse.rows(percentilesSql(tables, filter), asking?.signal)
    return rows.map((row) => {
      const [minute = 0, count = 0, p50Ms = 0, p95Ms = 0, p99Ms = 0] = row.map(Number)
      return { minuteMs: minute * 1_000, count, p50Ms, p95Ms, p99Ms }
    })
  }

  async groups(filter: LogFilter, grouping: Grouping, asking?: Asking): Promise<Groups> {
    const { clickHouse, tables } = this.#options
    const sums = new GroupSums(filter, grouping)
    const rows = await clickHouse.rows(groupsSql(tables, filter, grouping), asking?.signal)
    for (const [step, word, verdict, destination, status, outcome, reason, count] of rows) {
      const kind = kindIn(word)
      const record = {
        kind,
        destination: String(destination),
        status: Number(status),
        outcome: String(outcome),
        reason: String(reason),
      }
      const key = groupOf(record, grouping.by)
      const isDelivered = verdict === 'delivered'
      if (key !== undefined)
        sums.add(key, { atMs: Number(step) * grouping.stepMs, kind, isDelivered, count: Number(count) })
    }
    return sums.result()
  }

  async status(): Promise<LogStatus> {
    return { ...(await this.#extent()), behindMs: this.#options.behindMs() }
  }

  close(): Promise<void> {
    return this.#options.clickHouse.close()
  }

  async #newest(
    filter: LogFilter,
    behind: RowPlace | undefined,
    limit: number,
    asking: Asking | undefined,
  ): Promise<readonly ReadRow[]> {
    if (isNarrow(filter)) return this.#page(filter, behind, limit, asking)
    const { oldestMs, newestMs } = await this.#extent()
    const fromMs = Math.max(filter.fromMs, oldestMs)
    let toMs = Math.min(filter.toMs, newestMs + 1, (behind?.atMs ?? Infinity) + 1)
    const found: ReadRow[] = []
    for (let spanMs = firstSpanMs; toMs > fromMs && found.length < limit; spanMs *= spanGrowth) {
      const beginMs = Math.max(fromMs, toMs - spanMs)
      const within = { ...filter, fromMs: beginMs, toMs }
      found.push(...(await this.#page(within, behind, limit - found.length, asking)))
      toMs = beginMs
    }
    return found
  }

  async #page(
    filter: LogFilter,
    behind: RowPlace | undefined,
    limit: number,
    asking: Asking | undefined,
  ): Promise<readonly ReadRow[]> {
    const { clickHouse, tables } = this.#options
    if (filter.toMs <= filter.fromMs) return []
    return (await clickHouse.rows(pageSql(tables, filter, { behind, limit }), asking?.signal)).map(readRow)
  }

  async #extent(): Promise<Omit<LogStatus, 'behindMs'>> {
    const { clickHouse, tables } = this.#options
    const [row = []] = await clickHouse.rows(statusSql(tables))
    const [oldestMs = 0, newestMs = 0, rows = 0] = row.map(Number)
    return rows === 0 ? { oldestMs: 0, newestMs: 0, rows } : { oldestMs, newestMs, rows }
  }
}

/** Returns the first rows, as many as one answer may have. */
function cut(rows: readonly ReadRow[]): readonly ReadRow[] {
  let text = 0
  const end = rows.findIndex(({ record }) => (text += textOf(record)) > maxTextOfAnswer)
  return end === -1 ? rows : rows.slice(0, end + 1)
}

/**
 * Returns true if ClickHouse can find the rows that match a filter without reading all rows of a time span.
 */
function isNarrow({ destination, destinations, messageId, user }: LogFilter): boolean {
  return [destination, destinations, messageId, user].some((one) => one !== undefined)
}
