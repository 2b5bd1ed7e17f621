import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { IndexReader } from '../../src/delivery-log/sqlite/index-reader.ts'
import { IndexWriter } from '../../src/delivery-log/sqlite/index-writer.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import { say } from '../support/say.ts'
import type { BenchmarkResult } from '../support/settings.ts'
import { percentile, round } from '../support/statistics.ts'
import { rowOf } from '../support/table.ts'
import { destinationOf, messageIdOf, openStream, userOf } from './states.ts'

export type LogSettings = { rows?: number }

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const keptMs = 7 * dayMs
const batchRows = 20_000
const queries = 300
const megabyte = 1024 ** 2

/**
 * The index of the delivery log: a week of states is indexed and asked for. `rows_per_s` is for a second of CPU, without what makes the states; `rss` is
 * that of this process, which makes them as well.
 */
export async function runLogBenchmark({ rows = 5_000_000 }: LogSettings): Promise<BenchmarkResult> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-log-'))
  const toMs = Date.now()
  const fromMs = toMs - keptMs + hourMs
  try {
    const indexed = indexAll(folder, { rows, fromMs, toMs })
    const bytes = bytesIn(folder)
    const asked = askAll(folder, { rows, fromMs, toMs })
    const expiry = expireDay(folder, fromMs)
    const figures = {
      rows,
      rows_per_s: Math.round(rows / indexed.cpuS),
      rows_per_s_wall: Math.round(rows / indexed.wallS),
      bytes_per_row: round(bytes / rows, 1),
      query_p95_ms: {
        destination_time: round(asked.destination, 2),
        message_id: round(asked.message, 2),
        user: round(asked.user, 2),
        failed: round(asked.failed, 2),
        counts_hour: round(asked.counts, 2),
      },
      expiry_ms: round(expiry.tookMs, 1),
      expiry_files: expiry.files,
      rss_mb: Math.round(indexed.rss.at(-1) ?? 0),
      rss_mb_by_tenth: indexed.rss.map(Math.round),
      node: process.version,
    }
    return { table: tableOf(figures), figures }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

type Span = { rows: number; fromMs: number; toMs: number }

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

function p95(ask: (at: number) => void): number {
  const times: number[] = []
  for (let at = 0; at < queries; at++) {
    const startedMs = performance.now()
    ask(at)
    times.push(performance.now() - startedMs)
  }
  return percentile(
    times.toSorted((a, b) => a - b),
    0.95,
  )
}

/** The p95 of each kind of query, in milliseconds. Each asks for another place; the first of a file opens it. */
function askAll(folder: string, { rows, fromMs, toMs }: Span) {
  const reader = new IndexReader(folder)
  const rowAt = (at: number): number => Math.floor((((at * 7_919 + 13) % 9_973) / 9_973) * rows)
  const hourAt = (at: number) => {
    const beginMs = fromMs + (toMs - fromMs - hourMs) * (((at * 37) % 100) / 100)
    return { fromMs: beginMs, toMs: beginMs + hourMs }
  }
  const always = { fromMs: 0, toMs: Infinity }
  const page = { limit: 100 }
  const asked = {
    message: p95((at) => {
      if (reader.find(messageIdOf(rowAt(at))).length !== 1) throw new BenchmarkFailure('a message is lost')
    }),
    user: p95((at) => {
      const user = Buffer.from(userOf(rowAt(at)), 'latin1').toString('hex')
      if (reader.search({ ...always, user }, page).records.length === 0)
        throw new BenchmarkFailure('a user is lost')
    }),
    destination: p95((at) => {
      const filter = { ...hourAt(at), destination: destinationOf(at) }
      if (reader.search(filter, page).records.length === 0)
        throw new BenchmarkFailure('a destination is lost')
    }),
    failed: p95(
      (at) => void reader.search({ ...always, destination: destinationOf(at), onlyFailed: true }, page),
    ),
    counts: p95((at) => void reader.counts({ ...hourAt(at), destination: destinationOf(at) })),
  }
  reader.close()
  return asked
}

/** A day later: how long it takes until what is too old is gone. */
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
}): string {
  return [
    '',
    `${figures.rows.toLocaleString('en')} rows of a week`,
    rowOf('rows a second of CPU', [figures.rows_per_s.toLocaleString('en')]),
    rowOf('bytes a row', [String(figures.bytes_per_row)]),
    ...Object.entries(figures.query_p95_ms).map(([name, ms]) => rowOf(`p95 ${name}`, [`${ms} ms`])),
    rowOf('expiry of a day', [`${figures.expiry_ms} ms`]),
    rowOf('memory', [`${figures.rss_mb} MB`]),
    '',
  ].join('\n')
}
