import { seesAnswers, type Token } from '../../admin/tokens.ts'
import { timeOf } from '../../delivery-log/lines.ts'
import { type Groups, readDeadKey } from '../../delivery-log/groups.ts'
import type { LogFilter } from '../../delivery-log/log-query.ts'
import { logKinds, type LogRecord } from '../../delivery-log/log-record.ts'
import type { LogMinute } from '../../delivery-log/minutes.ts'
import { deliveryStateOf } from '../../delivery-log/delivery-state.ts'
import { parseTimestamp } from '../../message/timestamp.ts'

// Converts between the delivery log and the admin API. The functions make answers of the API from records of
// the log, and make filters for the log from bodies of requests. The functions here do no input or output.

type Seer = Pick<Token, 'seesContent' | 'grants'>
type Fields = Readonly<Record<string, unknown>>

/**
 * Returns a record in the form that an answer has. Fields that don't apply to the record are null. So is what
 * the endpoint has answered, for a token that doesn't see answers.
 */
export function recordData(record: LogRecord, seer: Seer): object {
  const { kind, status, durationMs, job } = record
  const isAttempt = kind === 'attempted'
  return {
    at: timeOf(record.atMs),
    kind,
    isEnd: record.isEnd,
    weight: record.weight,
    destination: orNull(record.destination),
    hook: orNull(record.hook),
    source: orNull(record.source),
    messageId: orNull(record.messageId),
    messageType: orNull(record.messageType),
    origin: record.origin,
    attempt: record.attempt,
    verdict: orNull(record.verdict),
    outcome: orNull(record.outcome),
    status: status === 0 ? null : status,
    durationMs: isAttempt ? durationMs : null,
    reason: orNull(record.reason),
    error: orNull(record.error),
    dueAt: isoOrNull(record.dueMs),
    firstSeenAt: timeOf(record.firstSeenMs),
    user: orNull(record.user),
    replay: orNull(job),
    answer: seesAnswers(seer) ? orNull(record.answer) : null,
  }
}

/**
 * Returns what became of a message: its deliveries, in the order in which they began. `records` are the
 * message's records, with the oldest first.
 */
export function lifeData(messageId: string, records: readonly LogRecord[], seer: Seer): object {
  const byDestination = Map.groupBy(records, ({ destination }) => destination)
  const deliveries = [...byDestination].map(([destination, ofIt]) => {
    const { state, dueMs } = deliveryStateOf(ofIt)
    return {
      destination: orNull(destination),
      state,
      dueAt: isoOrNull(dueMs),
      records: ofIt.map((record) => recordData(record, seer)),
    }
  })
  return { messageId, deliveries }
}

export function minuteData({ minuteMs, p50Ms, p95Ms, p99Ms, ...counts }: LogMinute): object {
  const hasAttempts = counts.succeeded + counts.failed > 0
  const durationMs = hasAttempts ? { p50: p50Ms, p95: p95Ms, p99: p99Ms } : null
  return { minute: timeOf(minuteMs), ...counts, durationMs }
}

/** Returns grouped counts as an answer has them. All lists have a number for each of `times`. */
export function groupsData({ fromMs, steps, groups, others }: Groups, stepMs: number): object {
  const times = Array.from({ length: steps }, (_, step) => timeOf(fromMs + step * stepMs))
  return { times, groups, others }
}

/** Returns groups of dead letters as an answer has them. Their times are those of steps. */
export function deadData(
  { fromMs: startMs, groups, others }: Groups,
  { stepMs, fromMs, toMs }: Pick<LogFilter, 'fromMs' | 'toMs'> & { readonly stepMs: number },
): object {
  const dead = groups.map(({ key, dead: counts }) => {
    const { destination, reason } = readDeadKey(key)
    const firstMs = startMs + stepMs * counts.findIndex((count) => count > 0)
    const lastMs = startMs + stepMs * (1 + counts.findLastIndex((count) => count > 0))
    return {
      destination: orNull(destination),
      reason,
      count: counts.reduce((sum, count) => sum + count, 0),
      firstAt: timeOf(Math.max(fromMs, firstMs)),
      lastAt: timeOf(Math.min(toMs, lastMs)),
    }
  })
  return { groups: dead, others }
}

/**
 * Builds a filter from a body that has passed schema validation. Returns a text that says what is wrong if
 * the filter makes no sense. `hashUser` and `hashValue` return `undefined` if no key is configured.
 */
export function filterOf(
  body: unknown,
  {
    nowMs,
    sinceMs = defaultSinceMs,
    hashUser,
    hashValue,
  }: {
    nowMs: number
    /** How far back the range goes if the body doesn't say it, in milliseconds. */
    sinceMs?: number | undefined
    hashUser: (userId: string) => string | undefined
    hashValue: (value: string) => string | undefined
  },
): LogFilter | string {
  const given: Fields = typeof body === 'object' && body !== null ? { ...body } : {}
  const text = (name: string): string | undefined => {
    const value = given[name]
    return typeof value === 'string' ? value : undefined
  }
  const fromMs = parsedTime(text('from'), nowMs - sinceMs)
  const toMs = parsedTime(text('to'), nowMs + clocksDifferMs)
  if (fromMs === undefined || toMs === undefined) return timesExpected
  if (fromMs >= toMs) return 'from has to be before to.'
  const userId = text('user')
  const user = userId === undefined ? undefined : hashUser(userId)
  const plainValue = text('value')
  const value = plainValue === undefined ? undefined : hashValue(plainValue)
  if ((userId !== undefined && user === undefined) || (plainValue !== undefined && value === undefined))
    return noKey
  const { status, isFailed, kinds } = given
  return {
    fromMs,
    toMs,
    user,
    value,
    destination: text('destination'),
    hook: text('hook'),
    source: text('source'),
    messageId: text('messageId'),
    outcome: text('outcome'),
    reason: text('reason'),
    job: text('replay'),
    status: typeof status === 'number' ? status : undefined,
    onlyFailed: isFailed === true ? true : undefined,
    kinds: Array.isArray(kinds) ? logKinds.filter((kind) => kinds.includes(kind)) : undefined,
  }
}

/** Returns the requested time range in the form that it has in answers. */
export function rangeData({ fromMs, toMs }: LogFilter): { from: string; to: string } {
  return { from: timeOf(fromMs), to: timeOf(toMs) }
}

const defaultSinceMs = 3_600_000
/** How far the clocks of workers may be ahead of this process's clock, in milliseconds. */
const clocksDifferMs = 60_000
const timesExpected = 'from and to are times, ISO 8601, such as 2026-01-31T12:00:00Z.'
const noKey =
  'Users and values are in the log by a keyed hash: set attempts.userKey (SLUICE_ATTEMPTS_USER_KEY), or attempts.userKeyFile, of sluice admin to what the workers have. Without a key the log has no users and no values.'

/** Parses a time. A time before 1970 becomes 1970, because the log has no older records. */
function parsedTime(text: string | undefined, otherwise: number): number | undefined {
  if (text === undefined) return otherwise
  const ms = parseTimestamp(text)
  return ms === undefined ? undefined : Math.max(0, ms)
}

export function isoOrNull(ms: number): string | null {
  return ms > 0 ? timeOf(ms) : null
}

function orNull(text: string): string | null {
  return text === '' ? null : text
}
