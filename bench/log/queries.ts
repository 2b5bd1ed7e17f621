import type { LogFilter, LogQuery } from '../../src/delivery-log/log-query.ts'
import { BenchmarkFailure } from '../support/failure.ts'
import { percentile, round } from '../support/statistics.ts'
import { destinationOf, messageIdOf, userOf } from './states.ts'

/** The number of rows that were indexed, and their time range. */
export type Span = { readonly rows: number; readonly fromMs: number; readonly toMs: number }

/** The p95 of each kind of query, in milliseconds. */
export type QueryTimes = Readonly<
  Record<'destination_time' | 'message_id' | 'user' | 'failed' | 'counts_hour', number>
>

const hourMs = 3_600_000
const queries = 300
const always: LogFilter = { fromMs: 0, toMs: Infinity }
const page = { limit: 100 }

/**
 * Runs all kinds of queries, one query at a time. Each query by message id or by user asks for another row.
 * The other queries repeat after 200 different ones.
 */
export async function askAll(
  query: Pick<LogQuery, 'find' | 'search' | 'counts'>,
  { rows, fromMs, toMs }: Span,
): Promise<QueryTimes> {
  const rowAt = (at: number): number => Math.floor((((at * 7_919 + 13) % 9_973) / 9_973) * rows)
  const hourAt = (at: number): LogFilter => {
    const beginMs = fromMs + (toMs - fromMs - hourMs) * (((at * 37) % 100) / 100)
    return { fromMs: beginMs, toMs: beginMs + hourMs }
  }
  const isThere = async (filter: LogFilter, what: string): Promise<void> => {
    const { records } = await query.search(filter, page)
    if (records.length === 0) throw new BenchmarkFailure(`a ${what} is lost`)
  }
  return {
    message_id: await p95(async (at) => {
      const found = await query.find(messageIdOf(rowAt(at)))
      if (found.length !== 1) throw new BenchmarkFailure('a message is lost')
    }),
    user: await p95((at) => {
      const user = Buffer.from(userOf(rowAt(at)), 'latin1').toString('hex')
      return isThere({ ...always, user }, 'user')
    }),
    destination_time: await p95((at) =>
      isThere({ ...hourAt(at), destination: destinationOf(at) }, 'destination'),
    ),
    failed: await p95((at) =>
      query.search({ ...always, destination: destinationOf(at), onlyFailed: true }, page),
    ),
    counts_hour: await p95((at) => query.counts({ ...hourAt(at), destination: destinationOf(at) })),
  }
}

async function p95(ask: (at: number) => Promise<unknown>): Promise<number> {
  const times: number[] = []
  for (let at = 0; at < queries; at++) {
    const startedMs = performance.now()
    await ask(at)
    times.push(performance.now() - startedMs)
  }
  return round(
    percentile(
      times.toSorted((a, b) => a - b),
      0.95,
    ),
    2,
  )
}
