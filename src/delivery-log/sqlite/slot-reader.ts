import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { kindOf, outcomeOf, verdictOf } from '../block-reader.ts'
import type { LogFilter } from '../log-query.ts'
import { dueMsOf, logKinds, logOutcomes, type LogRecord } from '../log-record.ts'
import { openFile } from './open-file.ts'
import {
  atMsOf,
  bucketIn,
  bucketSql,
  firstIdAt,
  hashOf,
  numberOfHex,
  readDetail,
  slotMs,
  stepSql,
} from './row.ts'

/**
 * A range of rows of a slot, which is the file of one hour. The ids of these rows are at least `from` and
 * lower than `before`.
 */
export type IdRange = { readonly from: number; readonly before: number }

export type Found = { readonly id: number; readonly record: LogRecord }

/**
 * The number of deliveries with the same minute and the same shape (a row of the table `shapes`). `bucket`:
 * the bucket of their duration, or 0 if durations were not asked for.
 */
export type Counted = {
  readonly minute: number
  readonly shape: number
  readonly bucket: number
  readonly count: number
}

type Shape = {
  readonly kind: number
  readonly isEnd: boolean
  readonly verdict: number
  readonly outcome: number
  readonly status: number
  readonly destination: string
  readonly hook: string
  readonly source: string
  readonly messageType: string
  readonly originTopic: string
  readonly reason: string
  readonly error: string
  readonly job: string
}

/**
 * Limit on the shapes (rows of the table `shapes`) that are looked up one by one. If more shapes match, most
 * records probably match, so the records are read in the order of time.
 */
const manyShapes = 128
/** The size of the cache for one file, in KiB. It is small, because there is a file for each hour. */
const cacheKib = 256

/** Reads the file of one slot, which is one hour. Never writes to the file. */
export class SlotReader {
  readonly slot: number
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()

  constructor(slot: number, path: string) {
    this.slot = slot
    this.#database = openFile(path, { readOnly: true })
    this.#database.exec(`PRAGMA cache_size = -${cacheKib}; PRAGMA query_only = 1`)
  }

  close(): void {
    this.#database.close()
  }

  get rows(): number {
    return Number(this.#get('SELECT n FROM rows')?.['n'] ?? 0)
  }

  /** Returns the time of the oldest row (`min`) or of the newest row (`max`), in epoch milliseconds. */
  timeOf(which: 'min' | 'max'): number {
    const id = this.#get(`SELECT ${which}(id) AS id FROM r`)?.['id']
    return typeof id === 'number' ? atMsOf(this.slot, id) : 0
  }

  /** Returns the range of ids for a time range. */
  rangeOf({ fromMs, toMs }: Pick<LogFilter, 'fromMs' | 'toMs'>): IdRange {
    return {
      from: firstIdAt(this.slot, fromMs),
      before: firstIdAt(this.slot, Math.min(toMs, (this.slot + 1) * slotMs)),
    }
  }

  /** Finds the rows that match a filter, newest first. */
  find(filter: LogFilter, range: IdRange, limit: number): Found[] {
    const { messageId, value, user } = filter
    if (messageId !== undefined && value === undefined)
      return this.#ofMessage(messageId, filter, range, limit)
    const shapes = this.#shapesOf(filter)
    if (shapes?.length === 0) return []
    if (value !== undefined)
      return this.#ofHash('SELECT id FROM k WHERE h = ?', value, {
        shapes,
        range,
        limit,
        isWanted: ({ record }) =>
          (user ?? record.user) === record.user && (messageId ?? record.messageId) === record.messageId,
      })
    if (user !== undefined)
      return this.#ofHash('SELECT id FROM u WHERE h = ?', user, {
        shapes,
        range,
        limit,
        isWanted: ({ record }) => record.user === user,
      })
    if (shapes === undefined || shapes.length > manyShapes) return this.#inTime(shapes, range, limit)
    const ids = shapes.flatMap((shape) =>
      this.#idsOf('SELECT id FROM r INDEXED BY rs WHERE s = ?', shape, range, limit),
    )
    return this.#rowsOf(ids.toSorted((a, b) => b - a).slice(0, limit))
  }

  /**
   * Counts deliveries by minute and by shape (row of the table `shapes`). If `withDuration` is true, also
   * counts them by the bucket of the duration. `minutes`: how many minutes are counted together.
   */
  count(filter: LogFilter, range: IdRange, withDuration: boolean, minutes = 1): Counted[] {
    if (filter.messageId !== undefined || filter.user !== undefined || filter.value !== undefined)
      return this.#countFound(filter, range)
    const shapes = this.#shapesOf(filter)
    if (shapes?.length === 0) return []
    const bucket = withDuration ? bucketSql('id') : '0'
    const select = `SELECT ${stepSql('id', minutes)} AS step, s AS shape, ${bucket} AS bucket, count(*) AS count FROM r INDEXED BY rs`
    const where = 'id >= ? AND id < ? GROUP BY 2, 1, 3'
    const { from, before } = range
    const rows =
      shapes === undefined || shapes.length > manyShapes
        ? this.#all(`${select} WHERE ${where}`, from, before)
        : shapes.flatMap((shape) => this.#all(`${select} WHERE s = ? AND ${where}`, shape, from, before))
    // A row with a weight over 1 stands for several deliveries. For such rows, the deliveries after the first
    // are added here.
    const heavy = this.#all(
      `SELECT ${stepSql('w.id', minutes)} AS step, r.s AS shape, ${withDuration ? bucketSql('w.id') : '0'} AS bucket, sum(w.n - 1) AS count FROM w JOIN r ON r.id = w.id WHERE w.id >= ? AND w.id < ? GROUP BY 1, 2, 3`,
      from,
      before,
    )
    const wanted = shapes === undefined ? undefined : new Set(shapes)
    return [...rows, ...heavy]
      .map((row) => countedOf(row, minutes))
      .filter(({ shape }) => wanted?.has(shape) ?? true)
  }

  shape(shape: number): Shape {
    const row = this.#get('SELECT * FROM shapes WHERE s = ?', shape) ?? {}
    const text = (name: string): string => {
      const value = row[name]
      return typeof value === 'string' ? value : ''
    }
    return {
      kind: Number(row['kind'] ?? 0),
      isEnd: row['isEnd'] === 1,
      verdict: Number(row['verdict'] ?? 0),
      outcome: Number(row['outcome'] ?? 0),
      status: Number(row['status'] ?? 0),
      destination: text('destination'),
      hook: text('hook'),
      source: text('source'),
      messageType: text('messageType'),
      originTopic: text('originTopic'),
      reason: text('reason'),
      error: text('error'),
      job: text('job'),
    }
  }

  /**
   * Returns the shapes (rows of the table `shapes`) that match a filter. Returns `undefined` if all shapes
   * match.
   */
  #shapesOf(filter: LogFilter): number[] | undefined {
    const { sql, values } = shapeSql(filter)
    if (sql.length === 0) return undefined
    return this.#all(`SELECT s FROM shapes WHERE ${sql.join(' AND ')}`, ...values).map((row) =>
      Number(row['s']),
    )
  }

  #ofMessage(messageId: string, filter: LogFilter, range: IdRange, limit: number): Found[] {
    const ids = this.#idsOf('SELECT id FROM m WHERE h = ?', hashOf(messageId), range, maxOfMessage)
    const shapes = this.#shapesOf(filter)
    const { user } = filter
    const found: Found[] = []
    for (const id of ids) {
      const [one] = this.#rowsOf([id], shapes)
      if (one?.record.messageId !== messageId || (user !== undefined && one.record.user !== user)) continue
      found.push(one)
      if (found.length >= limit) break
    }
    return found
  }

  /** Finds the rows of a user or a value by its hash. */
  #ofHash(
    select: string,
    hash: string,
    {
      shapes,
      range,
      limit,
      isWanted,
    }: {
      shapes: number[] | undefined
      range: IdRange
      limit: number
      isWanted: (found: Found) => boolean
    },
  ): Found[] {
    const number = numberOfHex(hash)
    const found: Found[] = []
    for (let { before } = range; found.length < limit;) {
      const ids = this.#idsOf(select, number, { from: range.from, before }, limit)
      found.push(...this.#rowsOf(ids, shapes).filter(isWanted))
      if (ids.length < limit) break
      before = ids.at(-1) ?? 0
    }
    return found.slice(0, limit)
  }

  #inTime(shapes: number[] | undefined, range: IdRange, limit: number): Found[] {
    const wanted = shapes === undefined ? undefined : new Set(shapes)
    const statement = this.#prepare('SELECT id, s, p FROM r WHERE id >= ? AND id < ? ORDER BY id DESC')
    const found: Found[] = []
    for (const row of statement.iterate(range.from, range.before)) {
      if (wanted !== undefined && !wanted.has(Number(row['s']))) continue
      found.push(this.#foundOf(row))
      if (found.length >= limit) break
    }
    return found
  }

  #idsOf(select: string, value: number, { from, before }: IdRange, limit: number): number[] {
    const rows = this.#all(
      `${select} AND id >= ? AND id < ? ORDER BY id DESC LIMIT ?`,
      value,
      from,
      before,
      limit,
    )
    return rows.map((row) => Number(row['id']))
  }

  #rowsOf(ids: readonly number[], shapes?: readonly number[]): Found[] {
    return ids.flatMap((id) => {
      const row = this.#get('SELECT id, s, p FROM r WHERE id = ?', id)
      if (row === undefined || (shapes !== undefined && !shapes.includes(Number(row['s'])))) return []
      return [this.#foundOf(row)]
    })
  }

  #foundOf(row: Record<string, unknown>): Found {
    const id = Number(row['id'])
    const { originTopic, ...shape } = this.shape(Number(row['s']))
    const { originPartition, originOffset, durationMicros, waitMs, ageMs, ...detail } = readDetail(
      row['p'] instanceof Uint8Array ? row['p'] : empty,
    )
    const atMs = atMsOf(this.slot, id)
    const kind = kindOf(shape.kind)
    const record: LogRecord = {
      ...shape,
      ...detail,
      atMs,
      kind,
      verdict: verdictOf(shape.verdict),
      outcome: outcomeOf(shape.outcome),
      origin: { topic: originTopic, partition: originPartition, offset: originOffset },
      durationMs: durationMicros / 1_000,
      dueMs: dueMsOf(kind, atMs, waitMs),
      firstSeenMs: atMs - ageMs,
    }
    return { id, record }
  }

  #countFound(filter: LogFilter, range: IdRange): Counted[] {
    return this.find(filter, range, maxOfMessage).map(({ id, record: { weight } }) => {
      const { s } = this.#get('SELECT s FROM r WHERE id = ?', id) ?? {}
      const minute = Math.floor((atMsOf(this.slot, id) % slotMs) / 60_000)
      return { minute, shape: Number(s), bucket: bucketIn(id), count: weight }
    })
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql)
    if (statement === undefined) {
      statement = this.#database.prepare(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }

  #all(sql: string, ...values: SQLInputValue[]): Record<string, unknown>[] {
    return this.#prepare(sql).all(...values)
  }

  #get(sql: string, ...values: SQLInputValue[]): Record<string, unknown> | undefined {
    return this.#prepare(sql).get(...values)
  }
}

/**
 * Limit on the records that are read for one message. A message has a few records for each destination and
 * try.
 */
const maxOfMessage = 10_000
const empty = new Uint8Array(1)

function countedOf(row: Record<string, unknown>, minutes: number): Counted {
  const { step, shape, bucket, count } = row
  return {
    minute: Number(step) * minutes,
    shape: Number(shape),
    bucket: Number(bucket),
    count: Number(count),
  }
}

/** Returns those conditions of a filter that concern the columns of the table `shapes`. */
function shapeSql(filter: LogFilter): { sql: string[]; values: SQLInputValue[] } {
  const sql: string[] = []
  const values: SQLInputValue[] = []
  for (const name of ['destination', 'source', 'hook', 'reason', 'status', 'job'] as const) {
    const value = filter[name]
    if (value === undefined) continue
    sql.push(`${name} = ?`)
    values.push(value)
  }
  if (filter.destinations !== undefined) {
    sql.push('destination IN (SELECT value FROM json_each(?))')
    values.push(JSON.stringify(filter.destinations))
  }
  if (filter.outcome !== undefined) {
    sql.push('outcome = ?')
    values.push(logOutcomes.findIndex((outcome) => outcome === filter.outcome))
  }
  if (filter.kinds !== undefined)
    sql.push(`kind IN (${filter.kinds.map((kind) => logKinds.indexOf(kind)).join(',')})`)
  if (filter.onlyFailed === true) sql.push('((kind = 0 AND verdict <> 1) OR kind = 3)')
  return { sql, values }
}
