import { mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { answerNow, IndexReader } from '../../src/delivery-log/sqlite/index-reader.ts'
import { IndexWriter } from '../../src/delivery-log/sqlite/index-writer.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import { say } from '../support/say.ts'
import type { BenchmarkResult } from '../support/settings.ts'
import { round } from '../support/statistics.ts'
import { rowOf } from '../support/table.ts'
import { type ClickHouseFigures, runOnClickHouse } from './clickhouse.ts'
import { askAll, type QueryTimes, type Span } from './queries.ts'
import { openStream } from './states.ts'

export type LogSettings = { rows?: number; clickhouse?: boolean }

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const keptMs = 7 * dayMs
const batchRows = 20_000
const megabyte = 1024 ** 2
/** The most bytes that a row takes on disk, also while it is written, in SQLite and in ClickHouse. */
const sqliteBytes = 130
const clickHouseBytes = 300

/**
 * Measures the index of the delivery log: indexes the states of a week and queries them. `rows_per_s` is
 * the rate for one second of CPU time, without the time for making the states. `rss_mb` is the memory of
 * this process, which also makes the states.
 */
export async function runLogBenchmark({
  rows = 5_000_000,
  clickhouse = false,
}: LogSettings): Promise<BenchmarkResult> {
  checkDisk(rows, clickhouse)
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-log-'))
  const toMs = Date.now()
  const fromMs = toMs - keptMs + hourMs
  try {
    const indexed = indexAll(folder, { rows, fromMs, toMs })
    const bytes = bytesIn(folder)
    const asked = await askFiles(folder, { rows, fromMs, toMs })
    const expiry = expireDay(folder, fromMs)
    rmSync(folder, { recursive: true, force: true })
    const beside = clickhouse ? await runOnClickHouse({ rows, fromMs, toMs }) : undefined
    const figures = {
      rows,
      rows_per_s: Math.round(rows / indexed.cpuS),
      rows_per_s_wall: Math.round(rows / indexed.wallS),
      bytes_per_row: round(bytes / rows, 1),
      query_p95_ms: asked,
      expiry_ms: round(expiry.tookMs, 1),
      expiry_files: expiry.files,
      rss_mb: Math.round(indexed.rss.at(-1) ?? 0),
      rss_mb_by_tenth: indexed.rss.map(Math.round),
      node: process.version,
      ...(beside !== undefined && { clickhouse: beside }),
    }
    return { table: tableOf(figures), figures }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Says how much disk space the benchmark may need, and fails if there isn't enough. */
function checkDisk(rows: number, clickhouse: boolean): void {
  const wanted = rows * Math.max(sqliteBytes, clickhouse ? clickHouseBytes : 0)
  const { bavail, bsize } = statfsSync(tmpdir())
  const room = `${gigabytes(wanted)} of the ${gigabytes(bavail * bsize)} that are free in ${tmpdir()} (TMPDIR)`
  say(`${rows.toLocaleString('en')} rows: up to ${room} are used, and free again at the end`)
  if (bavail * bsize < 1.2 * wanted) throw new BenchmarkFailure(`it would fill the disk: up to ${room}`)
}

function gigabytes(bytes: number): string {
  return `${round(bytes / 1024 ** 3, 1)} GB`
}

async function askFiles(folder: string, span: Span): Promise<QueryTimes> {
  const reader = new IndexReader(folder)
  const asked = await askAll(
    {
      find: async (messageId) => answerNow(reader.find(messageId)),
      search: async (filter, page) => answerNow(reader.search(filter, page)),
      counts: async (filter) => answerNow(reader.counts(filter)),
    },
    span,
  )
  reader.close()
  return asked
}

function indexAll(
  folder: string,
  { rows, fromMs, toMs }: Span,
): { cpuS: number; wallS: number; rss: number[] } {
  const writer = new IndexWriter({ folder, keptMs, now: Date.now })
  const stream = openStream({ rows, fromMs, toMs })
  const rss: number[] = []
  let cpuS = 0
  let wallS = 0
  while (stream.written < rows) {
    const blocks = stream.next(batchRows)
    const before = process.cpuUsage()
    const startedMs = performance.now()
    for (const block of blocks) writer.add(block)
    writer.commit()
    const { user, system } = process.cpuUsage(before)
    cpuS += (user + system) / 1e6
    wallS += (performance.now() - startedMs) / 1e3
    if (stream.written >= (rows / 10) * (rss.length + 1)) {
      rss.push(process.memoryUsage.rss() / megabyte)
      say(
        `${stream.written.toLocaleString('en')} rows, ${Math.round(stream.written / cpuS).toLocaleString('en')} a second of CPU`,
      )
    }
  }
  writer.close()
  return { cpuS, wallS, rss }
}

function bytesIn(folder: string): number {
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
}

/**
 * Sets the writer's clock a day ahead, and measures how long it takes to remove the files that are too old
 * then.
 */
function expireDay(folder: string, fromMs: number): { tookMs: number; files: number } {
  const writer = new IndexWriter({ folder, keptMs, now: () => fromMs + keptMs + dayMs })
  const startedMs = performance.now()
  const files = writer.tend()
  const tookMs = performance.now() - startedMs
  writer.close()
  return { tookMs, files }
}

function tableOf(figures: {
  rows: number
  rows_per_s: number
  bytes_per_row: number
  query_p95_ms: Readonly<Record<string, number>>
  expiry_ms: number
  rss_mb: number
  clickhouse?: ClickHouseFigures
}): string {
  const { clickhouse } = figures
  return [
    '',
    `${figures.rows.toLocaleString('en')} rows of a week`,
    rowOf('rows a second of CPU', [figures.rows_per_s.toLocaleString('en')]),
    rowOf('bytes a row', [String(figures.bytes_per_row)]),
    ...Object.entries(figures.query_p95_ms).map(([name, ms]) => rowOf(`p95 ${name}`, [`${ms} ms`])),
    rowOf('expiry of a day', [`${figures.expiry_ms} ms`]),
    rowOf('memory', [`${figures.rss_mb} MB`]),
    ...(clickhouse === undefined ? [] : clickHouseLines(clickhouse)),
    '',
  ].join('\n')
}

function clickHouseLines(figures: ClickHouseFigures): string[] {
  return [
    '',
    'the same in ClickHouse',
    rowOf('rows a second of CPU', [figures.rows_per_s.toLocaleString('en')]),
    rowOf('of its own CPU', [figures.engine_rows_per_s.toLocaleString('en')]),
    rowOf('bytes a row', [String(figures.bytes_per_row)]),
    ...Object.entries(figures.query_p95_ms).map(([name, ms]) => rowOf(`p95 ${name}`, [`${ms} ms`])),
    rowOf('expiry of a day', [`${figures.expiry_ms} ms`]),
    rowOf('its memory', [`${figures.engine_rss_mb} MB`]),
  ]
}
