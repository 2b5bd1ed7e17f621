import type { Grouping } from '../groups.ts'
import { BadCursorError, type LogFilter } from '../log-query.ts'
import { type ColumnName, columns, hashSql, quoted, rowKey, type Tables } from './tables.ts'

// The texts of the queries for ClickHouse.

/** A query. `sql` has names in braces, and `params` has the values of these names. */
export type Asked = { readonly sql: string; readonly params: Readonly<Record<string, unknown>> }

/** The place of a page's last row: the values of this row in the columns of `rowKey`. */
export type RowPlace = {
  readonly atMs: number
  readonly unit: number
  readonly offset: number
  readonly number: number
}

/** A time that is later than any time that ClickHouse can store. */
const endOfTimeMs = 10_413_791_999_999
const order = rowKey.map((name) => `${name} DESC`).join(', ')
const everyColumn = columns.map(([name]) => (name === 'at' ? 'toUnixTimestamp64Milli(at)' : name)).join(', ')

/**
 * Returns the query for a page: the newest rows that match a filter and are older than a place. A row that
 * was written twice is returned once. ClickHouse stores the rows of a destination sorted by the same columns
 * as the query's result, so it reads few other rows.
 */
export function pageSql(
  tables: Tables,
  filter: LogFilter,
  { behind, limit }: { behind?: RowPlace | undefined; limit: number },
): Asked {
  const where = conditionsOf(tables, filter)
  if (behind !== undefined) {
    where.add('at <= fromUnixTimestamp64Milli({lastAt:Int64})', { lastAt: behind.atMs })
    where.add(
      `(${rowKey.join(', ')}) < (fromUnixTimestamp64Milli({lastAt:Int64}), {lastUnit:UInt32}, {lastOffset:UInt64}, {lastNumber:UInt32})`,
      { lastUnit: behind.unit, lastOffset: behind.offset, lastNumber: behind.number },
    )
  }
  return {
    sql: `SELECT ${everyColumn} FROM ${quoted(tables, tables.attempts)} ${where.sql} ORDER BY ${order} LIMIT 1 BY ${rowKey.join(', ')} LIMIT ${limit}`,
    params: where.params,
  }
}

/**
 * Returns the query for counts per minute. With FINAL, a row that was written twice counts once. For this,
 * ClickHouse has to read the key of each row.
 */
export function countsSql(tables: Tables, filter: LogFilter): Asked {
  const where = conditionsOf(tables, filter)
  return {
    sql: `SELECT ${minuteSql} AS minute, kind, verdict, reason, sum(weight) FROM ${quoted(tables, tables.attempts)} FINAL ${where.sql} GROUP BY minute, kind, verdict, reason ORDER BY minute ${settingsOfFinal}`,
    params: where.params,
  }
}

/** Returns the query for counts by step, kind and group. See `groupOf`. */
export function groupsSql(tables: Tables, filter: LogFilter, { by, stepMs }: Grouping): Asked {
  const where = conditionsOf(tables, filter)
  const group = {
    all: "'', 0, '', ''",
    destination: "destination, 0, '', ''",
    status: "'', status, outcome, ''",
    dead: "destination, 0, '', reason",
  }[by]
  return {
    sql: `SELECT intDiv(toUnixTimestamp64Milli(at), {stepMs:Int64}) AS step, kind, verdict, ${group}, sum(weight) FROM ${quoted(tables, tables.attempts)} FINAL ${where.sql} GROUP BY 1, 2, 3, 4, 5, 6, 7 ${settingsOfFinal}`,
    params: { ...where.params, stepMs },
  }
}

export function percentilesSql(tables: Tables, filter: LogFilter): Asked {
  const where = conditionsOf(tables, { ...filter, kinds: ['attempted'] })
  return {
    sql: `SELECT ${minuteSql} AS minute, sum(weight), ${percentileSql(0.5)}, ${percentileSql(0.95)}, ${percentileSql(0.99)} FROM ${quoted(tables, tables.attempts)} FINAL ${where.sql} GROUP BY minute ORDER BY minute ${settingsOfFinal}`,
    params: where.params,
  }
}

/**
 * Returns the query for the time of the oldest row, the time of the newest row, and the number of rows.
 * ClickHouse answers this query from the metadata of its data parts.
 */
export function statusSql(tables: Tables): Asked {
  return {
    sql: `SELECT toUnixTimestamp64Milli(min(at)), toUnixTimestamp64Milli(max(at)), count() FROM ${quoted(tables, tables.attempts)}`,
    params: {},
  }
}

/** Returns the SQL expression for a percentile in milliseconds, in steps of a tenth of a millisecond. */
function percentileSql(share: number): string {
  return `quantileExactWeighted(${share})(intDiv(duration_us, 100), weight) / 10`
}

const minuteSql = 'toUnixTimestamp(toStartOfMinute(at))'
/**
 * A setting with which FINAL works within each day. This is enough, because both copies of a row that was
 * written twice have the same time, and so the same day.
 */
const settingsOfFinal = 'SETTINGS do_not_merge_across_partitions_select_final = 1'

class Conditions {
  readonly #sql: string[] = []
  readonly params: Record<string, unknown> = {}

  add(sql: string, params: Readonly<Record<string, unknown>> = {}): void {
    this.#sql.push(sql)
    Object.assign(this.params, params)
  }

  get sql(): string {
    return this.#sql.length === 0 ? '' : `WHERE ${this.#sql.join(' AND ')}`
  }
}

const sameColumns = ['destination', 'source', 'hook', 'outcome', 'reason', 'job', 'user'] as const

function conditionsOf(tables: Tables, filter: LogFilter): Conditions {
  const where = new Conditions()
  const { destinations, messageId, user, value, status, kinds, onlyFailed } = filter
  const time = timeSql(filter)
  for (const one of time.sql) where.add(one, time.params)
  for (const name of sameColumns) {
    const wanted = filter[name]
    if (wanted !== undefined) where.add(`${name} = {${name}:String}`, { [name]: wanted })
  }
  if (destinations !== undefined) where.add('destination IN {destinations:Array(String)}', { destinations })
  if (messageId !== undefined) where.add('message_id = {messageId:String}', { messageId })
  if (status !== undefined) where.add('status = {status:UInt16}', { status })
  if (kinds !== undefined) where.add('kind IN {kinds:Array(String)}', { kinds })
  if (onlyFailed === true) where.add("(kind = 'dead' OR (kind = 'attempted' AND verdict != 'delivered'))")
  const hash =
    messageId === undefined
      ? user === undefined
        ? undefined
        : hashSql('user', '{user:String}')
      : hashSql('message', '{messageId:String}')
  if (hash !== undefined) where.add(keysSql(tables, hash, time.sql))
  if (value !== undefined) {
    where.add(keysSql(tables, '{value:UInt64}', time.sql), { value: Number.parseInt(value, 16) })
  }
  return where
}

/**
 * Returns an SQL condition that uses the table of keys. Rows are sorted by destination and time, so the rows
 * of a message or a user are in different places. The table of keys says where these rows are.
 */
function keysSql(tables: Tables, hash: string, time: readonly string[]): string {
  const key = ['destination', ...rowKey] satisfies ColumnName[]
  const where = [`hash = ${hash}`, ...time].join(' AND ')
  return `(${key.join(', ')}) IN (SELECT ${key.join(', ')} FROM ${quoted(tables, tables.keys)} WHERE ${where})`
}

function timeSql({ fromMs, toMs }: LogFilter): { sql: string[]; params: Record<string, unknown> } {
  const sql: string[] = []
  const params: Record<string, unknown> = {}
  if (fromMs > 0) {
    sql.push('at >= fromUnixTimestamp64Milli({fromMs:Int64})')
    params['fromMs'] = Math.ceil(Math.min(fromMs, endOfTimeMs))
  }
  if (toMs < endOfTimeMs) {
    sql.push('at < fromUnixTimestamp64Milli({toMs:Int64})')
    params['toMs'] = Math.ceil(toMs)
  }
  return { sql, params }
}

export function cursorOf({ atMs, unit, offset, number }: RowPlace): string {
  return Buffer.from(`${atMs}.${unit}.${offset}.${number}`).toString('base64url')
}

/** Decodes a cursor. Throws a `BadCursorError` if the text is no cursor that this module made. */
export function placeOf(cursor: string): RowPlace {
  const match = /^(\d{1,14})\.(\d{1,10})\.(\d{1,16})\.(\d{1,10})$/.exec(
    Buffer.from(cursor, 'base64url').toString(),
  )
  if (match === null) throw new BadCursorError('the cursor is of no page of this log')
  const [atMs = 0, unit = 0, offset = 0, number = 0] = match.slice(1).map(Number)
  return { atMs, unit, offset, number }
}
