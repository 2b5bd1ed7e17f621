import type { LogFilter, LogPage, LogQuery } from '../log-query.ts'
import type { ClickHouse } from './client.ts'
import { countsSql, cursorOf, pageSql, percentilesSql, type Place, placeOf, statusSql } from './query-sql.ts'
import { kindIn, type ReadRow, readRow } from './read-row.ts'
import type { Tables } from './tables.ts'

export type ClickHouseQueryOptions = {
  readonly clickHouse: ClickHouse
  readonly tables: Tables
  /** How far the index is behind the topic, in milliseconds; -1 where that isn't known. */
  readonly behindMs: () => number
}

/** Of one message. */
const maxFound = 10_000
/** Without a destination, a message or a user the newest time is looked at first, and then ever longer ones before it. */
const firstSpanMs = 3_600_000
const spanGrowth = 8

/** Asks the tables of the delivery log. Closing it closes its connections. */
export function openClickHouseQuery({ clickHouse, tables, behindMs }: ClickHouseQueryOptions): LogQuery {
  async function page(
    filter: LogFilter,
    behind: Place | undefined,
    limit: number,
  ): Promise<readonly ReadRow[]> {
    if (filter.toMs <= filter.fromMs) return []
    return (await clickHouse.rows(pageSql(tables, filter, { behind, limit }))).map(readRow)
  }

  async function newest(filter: LogFilter, behind: Place | undefined, limit: number): Promise<ReadRow[]> {
    if (isNarrow(filter)) return [...(await page(filter, behind, limit))]
    const { oldestMs, newestMs } = await extent()
    const fromMs = Math.max(filter.fromMs, oldestMs)
    let toMs = Math.min(filter.toMs, newestMs + 1, (behind?.atMs ?? Infinity) + 1)
    const found: ReadRow[] = []
    for (let spanMs = firstSpanMs; toMs > fromMs && found.length < limit; spanMs *= spanGrowth) {
      const beginMs = Math.max(fromMs, toMs - spanMs)
      found.push(...(await page({ ...filter, fromMs: beginMs, toMs }, behind, limit - found.length)))
      toMs = beginMs
    }
    return found
  }

  async function extent() {
    const [row = []] = await clickHouse.rows(statusSql(tables))
    const [oldestMs = 0, newestMs = 0, rows = 0] = row.map(Number)
    return rows === 0 ? { oldestMs: 0, newestMs: 0, rows } : { oldestMs, newestMs, rows }
  }

  return {
    async find(messageId) {
      const found = await page({ fromMs: 0, toMs: Infinity, messageId }, undefined, maxFound)
      return found.map(({ record }) => record).toReversed()
    },
    async search(filter, { limit, cursor }): Promise<LogPage> {
      const rows = await newest(filter, cursor === undefined ? undefined : placeOf(cursor), limit)
      const last = rows.at(-1)
      return {
        records: rows.map(({ record }) => record),
        ...(last !== undefined && rows.length >= limit && { cursor: cursorOf(last.place) }),
      }
    },
    async counts(filter) {
      const rows = await clickHouse.rows(countsSql(tables, filter))
      return rows.map(([minute, kind, verdict, reason, count]) => ({
        minuteMs: Number(minute) * 1_000,
        kind: kindIn(kind),
        verdict: String(verdict),
        reason: String(reason),
        count: Number(count),
      }))
    },
    async percentiles(filter) {
      const rows = await clickHouse.rows(percentilesSql(tables, filter))
      return rows.map((row) => {
        const [minute = 0, count = 0, p50Ms = 0, p95Ms = 0, p99Ms = 0] = row.map(Number)
        return { minuteMs: minute * 1_000, count, p50Ms, p95Ms, p99Ms }
      })
    },
    status: async () => ({ ...(await extent()), behindMs: behindMs() }),
    close: () => clickHouse.close(),
  }
}

/** Its rows lie together. */
function isNarrow({ destination, messageId, user }: LogFilter): boolean {
  return destination !== undefined || messageId !== undefined || user !== undefined
}
