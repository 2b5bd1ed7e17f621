import { type ClickHouse, connectClickHouse } from '../../src/delivery-log/clickhouse/connect-clickhouse.ts'
import { startClickHouseIndexing } from '../../src/delivery-log/clickhouse/start-indexing.ts'
import { openClickHouseQuery } from '../../src/delivery-log/clickhouse/clickhouse-query.ts'
import { ddl, quoted, type Tables, tablesOf } from '../../src/delivery-log/clickhouse/tables.ts'
import type { Indexing } from '../../src/delivery-log/indexing.ts'
import { accessOf, startClickHouse, type TestClickHouse } from '../../test/support/clickhouse.ts'
import { say } from '../support/say.ts'
import { round } from '../support/statistics.ts'
import { askAll, type QueryTimes, type Span } from './queries.ts'
import { openStream } from './states.ts'

export type ClickHouseFigures = {
  /**
   * Rows for one second of CPU time: of Sluice, and of the engine including its merges. `engine_rows_per_s`
   * is 0 if the engine runs elsewhere.
   */
  readonly rows_per_s: number
  readonly engine_rows_per_s: number
  readonly rows_per_s_wall: number
  readonly bytes_per_row: number
  readonly query_p95_ms: QueryTimes
  readonly expiry_ms: number
  readonly engine_rss_mb: number
  readonly engine_rss_mb_by_tenth: readonly number[]
  readonly parts: number
  readonly version: string
}

const database = 'sluice_bench'
const keptMs = 30 * 86_400_000
const batchRows = 20_000
/** Limit on the bytes that wait to be indexed. A process that reads the topic has the same limit. */
const maxHeldBytes = 16 * 1024 ** 2

type Used = { cpuS: number; wallS: number; engineCpuS: number; rssMb: readonly number[] }

/**
 * Measures ClickHouse with the same states and the same queries as the index in files. All requests go
 * through ClickHouse's HTTP interface, as Sluice's requests do.
 */
export async function runOnClickHouse(span: Span): Promise<ClickHouseFigures> {
  const server = await startClickHouse()
  const clickHouse = connectClickHouse({ ...accessOf(server), timeoutMs: 300_000 })
  const tables = tablesOf(database, 'attempts')
  try {
    for (const sql of ddl(tables, keptMs)) await clickHouse.run({ sql, params: {} })
    const used = await insertAll({ server, clickHouse, tables }, span)
    const [[bytes, parts] = []] = await clickHouse.rows({
      sql: 'SELECT sum(bytes_on_disk), count() FROM system.parts WHERE active AND database = {database:String}',
      params: { database },
    })
    const [[version] = []] = await clickHouse.rows({ sql: 'SELECT version()', params: {} })
    const query = openClickHouseQuery({ clickHouse, tables, behindMs: () => -1 })
    const asked = await askAll(query, span)
    return {
      rows_per_s: Math.round(span.rows / used.cpuS),
      engine_rows_per_s: used.engineCpuS > 0 ? Math.round(span.rows / used.engineCpuS) : 0,
      rows_per_s_wall: Math.round(span.rows / used.wallS),
      bytes_per_row: round(Number(bytes) / span.rows, 1),
      query_p95_ms: asked,
      expiry_ms: round(await expireDay(clickHouse, tables, span.fromMs), 1),
      engine_rss_mb: used.rssMb.at(-1) ?? 0,
      engine_rss_mb_by_tenth: used.rssMb,
      parts: Number(parts),
      version: String(version),
    }
  } finally {
    await clickHouse
      .run({ sql: `DROP DATABASE IF EXISTS ${database} SYNC`, params: {} })
      .catch(() => undefined)
    await clickHouse.close()
    await server.stop()
  }
}

/**
 * Inserts all states with the part of Sluice that indexes the log. The time for making the states doesn't
 * count.
 */
async function insertAll(
  { server, clickHouse, tables }: { server: TestClickHouse; clickHouse: ClickHouse; tables: Tables },
  span: Span,
): Promise<Used> {
  const { rows } = span
  let taken = Promise.withResolvers<void>()
  const indexing = await startClickHouseIndexing({
    clickHouse,
    tables,
    keptMs,
    log: {
      info: (_fields, message) => say(message),
      warn: (fields, message) => say(`${message}: ${JSON.stringify(fields)}`),
    },
    onIndexed: () => undefined,
    onTaken: () => taken.resolve(),
  })
  const makingS = { cpu: 0, wall: 0 }
  const rssMb: number[] = []
  const before = {
    cpuS: cpuSeconds(),
    engineCpuS: (await server.usage())?.cpuS ?? 0,
    atMs: performance.now(),
  }
  const stream = openStream(span)
  while (stream.written < rows) {
    const making = { cpuS: cpuSeconds(), atMs: performance.now() }
    const blocks = stream.next(batchRows)
    makingS.cpu += cpuSeconds() - making.cpuS
    makingS.wall += (performance.now() - making.atMs) / 1e3
    indexing.add(blocks)
    while (isFull(indexing)) {
      taken = Promise.withResolvers()
      await taken.promise
    }
    if (stream.written >= (rows / 10) * (rssMb.length + 1)) {
      rssMb.push(Math.round((await server.usage())?.rssMb ?? 0))
      say(`${stream.written.toLocaleString('en')} rows to ClickHouse`)
    }
  }
  await indexing.stop()
  return {
    cpuS: cpuSeconds() - before.cpuS - makingS.cpu,
    wallS: (performance.now() - before.atMs) / 1e3 - makingS.wall,
    engineCpuS: ((await server.usage())?.cpuS ?? 0) - before.engineCpuS,
    rssMb,
  }
}

function isFull({ heldBytes }: Indexing): boolean {
  return heldBytes > maxHeldBytes
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

/**
 * Drops the partitions of one day, as the TTL does in the end. Returns how long this takes, in
 * milliseconds.
 */
async function expireDay(clickHouse: ClickHouse, tables: Tables, fromMs: number): Promise<number> {
  const startedMs = performance.now()
  for (const table of [tables.attempts, tables.keys]) {
    const day = new Date(fromMs).toISOString().slice(0, 10)
    await clickHouse.run({ sql: `ALTER TABLE ${quoted(tables, table)} DROP PARTITION '${day}'`, params: {} })
  }
  return performance.now() - startedMs
}
