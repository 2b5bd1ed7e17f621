import type { Config } from '../../config/schema.ts'
import { recordHeading, recordLine, timeOf } from '../../delivery-log/lines.ts'
import {
  BadCursorError,
  type LogFilter,
  type LogQuery,
  QueryTooLongError,
} from '../../delivery-log/log-query.ts'
import { logKinds, logOutcomes } from '../../delivery-log/log-record.ts'
import { type LogMinute, minutesOf } from '../../delivery-log/minutes.ts'
import { parseTimestamp } from '../../message/timestamp.ts'
import { hashedUser, hashedValue, openLogQuery } from '../../roles/operations/open-log-query.ts'
import { StartError, WrongUseError } from '../../roles/start/start-error.ts'

/** The flags of a search, as the user has written them on the command line. */
export type SearchFlags = {
  readonly since: string | undefined
  readonly until: string | undefined
  readonly destination: string | undefined
  readonly source: string | undefined
  readonly hook: string | undefined
  readonly message: string | undefined
  readonly user: string | undefined
  readonly value: string | undefined
  readonly kind: string | undefined
  readonly outcome: string | undefined
  readonly reason: string | undefined
  readonly status: string | undefined
  readonly job: string | undefined
  readonly failed: boolean
}

/** The lines for standard output. `isFound` is false if the log has no matching record. */
export type CommandOutput = { readonly lines: readonly string[]; readonly isFound: boolean }

const maxPage = 1_000

/** Finds the newest records that match the flags. */
export async function searchLog(
  config: Config,
  flags: SearchFlags,
  { limit: given, cursor, isJson }: { limit: string; cursor: string | undefined; isJson: boolean },
): Promise<CommandOutput> {
  const limit = wholeNumber('--limit', given, maxPage)
  const filter = searchFilter(config, flags)
  return withQuery(config, async (query) => {
    const { records, cursor: next } = await query.search(filter, { limit, cursor })
    const { columns } = process.stdout
    const rows = records.map((record) => (isJson ? JSON.stringify(record) : recordLine(record, columns)))
    if (isJson) {
      const more = next === undefined ? [] : [JSON.stringify({ cursor: next })]
      return { lines: [...rows, ...more], isFound: records.length > 0 }
    }
    const more = next === undefined ? [] : [`More with --cursor ${next}`]
    const lines =
      records.length === 0 ? ['The log has no such entries.'] : [recordHeading(columns), ...rows, ...more]
    return { lines, isFound: records.length > 0 }
  })
}

/** Returns lines with the counts and the durations of the matching records, for each minute. */
export async function logStats(config: Config, flags: SearchFlags, isJson: boolean): Promise<CommandOutput> {
  const filter = searchFilter(config, flags)
  return withQuery(config, async (query) => {
    const all = minutesOf(await query.counts(filter), await query.percentiles(filter))
    if (isJson) return { lines: all.map((minute) => JSON.stringify(minute)), isFound: all.length > 0 }
    if (all.length === 0) return { lines: ['The log has no such entries.'], isFound: false }
    return { lines: [statsHeading, ...all.map(statsLine)], isFound: true }
  })
}

const shownCounts = ['succeeded', 'failed', 'parked', 'dead', 'filtered', 'p50Ms', 'p95Ms', 'p99Ms'] as const
const statsHeading = ['minute'.padEnd(22), ...shownCounts.map((name) => name.padStart(10))].join(' ')

function statsLine(minute: LogMinute): string {
  const cells = shownCounts.map((name) => String(Math.round(minute[name])).padStart(10))
  return [`${timeOf(minute.minuteMs).slice(0, 16)}Z`.padEnd(22), ...cells].join(' ')
}

/**
 * Opens the index, calls `ask` with it, and closes it. If the index has a problem, throws an error of one
 * line.
 */
export async function withQuery<T>(config: Config, ask: (query: LogQuery) => Promise<T>): Promise<T> {
  const query = await openLogQuery(config)
  try {
    return await ask(query)
  } catch (cause) {
    if (cause instanceof BadCursorError)
      throw new WrongUseError('--cursor: this log gave no such cursor.', { cause })
    if (cause instanceof QueryTooLongError) throw new StartError(`${cause.message}.`, { cause })
    if (cause instanceof Error && cause.name === 'QueryFailedError') {
      const settings =
        config.index.url === undefined
          ? 'clickhouse.url (SLUICE_CLICKHOUSE_URL) and clickhouse.user'
          : 'index.url (SLUICE_INDEX_URL) and index.token'
      throw new StartError(`${cause.message} See ${settings}.`, { cause })
    }
    throw cause
  } finally {
    await query.close()
  }
}

const defaultSince = '1h'

/** Returns the filter that the flags ask for. Throws a `StartError` that names the first invalid flag. */
export function searchFilter(config: Config, flags: SearchFlags): LogFilter {
  const nowMs = Date.now()
  const { kind, outcome, status, user, value, since, until, message, failed, ...same } = flags
  const fromMs = timeGiven('--since', since ?? defaultSince, nowMs)
  // The range includes the next minute, because the clocks of workers differ a little.
  const toMs = until === undefined ? nowMs + 60_000 : timeGiven('--until', until, nowMs)
  if (fromMs >= toMs) {
    const what = since === undefined ? `--since, ${defaultSince} ago unless it is given,` : '--since'
    throw new WrongUseError(`${what} has to be before --until.`)
  }
  return {
    ...same,
    fromMs,
    toMs,
    messageId: message,
    onlyFailed: failed,
    kinds: kind === undefined ? undefined : [oneOf('--kind', kind, logKinds)],
    outcome: outcome === undefined ? undefined : oneOf('--outcome', outcome, logOutcomes.slice(1)),
    status: status === undefined ? undefined : wholeNumber('--status', status, 999),
    user: user === undefined ? undefined : hashGiven('--user', hashedUser(config, user)),
    value: value === undefined ? undefined : hashGiven('--value', hashedValue(config, value)),
  }
}

function hashGiven(flag: '--user' | '--value', hash: string | undefined): string {
  if (hash !== undefined) return hash
  const what = flag === '--user' ? 'users' : 'values'
  throw new StartError(
    `${flag}: ${what} are in the log by a keyed hash: set attempts.userKey (SLUICE_ATTEMPTS_USER_KEY), or attempts.userKeyFile, to what the workers have. Without a key the log has no ${what}.`,
  )
}

const agoUnits: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/**
 * Parses a time. A duration is counted back from now: `15m` is the time 15 minutes before now. Any other text
 * has to be a time in ISO 8601. A time without a zone is in UTC.
 */
export function timeGiven(flag: string, text: string, nowMs: number): number {
  const ago = /^(\d{1,6})([smhd])$/.exec(text)
  if (ago !== null) return nowMs - Number(ago[1]) * (agoUnits[ago[2] ?? ''] ?? 0)
  const ms = parseTimestamp(text)
  if (ms === undefined)
    throw new WrongUseError(`${flag}: expected a time such as 15m, 24h, 7d, or 2026-01-31T12:00:00Z.`)
  // The log has no records from before 1970.
  return Math.max(0, ms)
}

export function wholeNumber(flag: string, text: string, most: number): number {
  const value = /^\d{1,12}$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= 1 && value <= most))
    throw new WrongUseError(`${flag}: expected a whole number from 1 to ${most}.`)
  return value
}

function oneOf<T extends string>(flag: string, text: string, words: readonly T[]): T {
  const word = words.find((known) => known === text)
  if (word === undefined) throw new WrongUseError(`${flag}: expected one of ${words.join(', ')}.`)
  return word
}
