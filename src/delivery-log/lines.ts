import type { LogRecord } from './log-record.ts'
import { deliveryStateOf } from './delivery-state.ts'

// Formats the delivery log as lines of text for people.

/** A local time on a terminal has one character more than a time in UTC. */
const widths = [25, 20, 12, 24, 24] as const
/** The narrowest columns, for a terminal of 100 columns or fewer. */
const narrowWidths = [25, 12, 9, 20, 24] as const

/** Returns the heading of rows that are shown on a terminal of so many columns; `undefined`: on none. */
export function recordHeading(columns?: number): string {
  return cellsOf(['time', 'destination', 'what', 'result', 'message', 'hook and try'], columns)
}

/** Formats a record as a row below `recordHeading`. */
export function recordLine(record: LogRecord, columns?: number): string {
  const { atMs, destination, kind, messageId, hook, attempt, weight } = record
  const tried = [hook, attempt > 0 ? `try ${attempt}` : '', weight > 1 ? `stands for ${weight}` : '']
  const cells = [
    timeOf(atMs),
    plain(destination),
    kind,
    resultOf(record),
    plain(messageId),
    tried.filter((part) => part !== '').join(', '),
  ]
  return cellsOf(cells, columns)
}

function resultOf(record: LogRecord): string {
  const { kind, status, outcome, error, reason, durationMs, dueMs } = record
  switch (kind) {
    case 'attempted': {
      const answer = outcome === 'answer' ? String(status) : [outcome, plain(error)].join(' ').trim()
      return `${answer} in ${Math.round(durationMs * 10) / 10} ms`
    }
    case 'parked':
      return `${reason}, ${dueMs === 0 ? 'waits for its turn' : `again in ${formatWait(dueMs - record.atMs)}`}`
    case 'dead':
    case 'omitted':
    case 'filtered':
      return reason
    case 'delivered':
    case 'superseded':
    case 'suppressed':
      return ''
  }
}

/**
 * Formats the history of a message: for each of its deliveries, all records from the first to the last.
 * `turnWithin` says in which time the turn of a delivery comes that waits in the queue of a destination now.
 */
export function timelineOf(
  records: readonly LogRecord[],
  turnWithin: (destination: string) => string | undefined = () => undefined,
): string[] {
  const byDestination = Map.groupBy(records, ({ destination }) => destination)
  return [...byDestination].flatMap(([destination, ofIt]) => [
    `${destination === '' ? 'no destination' : plain(destination)}: ${stateText(ofIt, turnWithin)}`,
    ...ofIt
      .flatMap((record) => [timelineLine(record), ...answerLines(record.answer)])
      .map((line) => `  ${line}`),
  ])
}

function stateText(
  records: readonly LogRecord[],
  turnWithin: (destination: string) => string | undefined,
): string {
  const { state, dueMs } = deliveryStateOf(records)
  if (state !== 'waiting') return state === 'under_way' ? 'under way' : state
  const parked = records.findLast(({ kind }) => kind === 'parked')
  if (dueMs > 0) return `next try at ${timeOf(dueMs)}, rung ${formatWait(dueMs - (parked?.atMs ?? dueMs))}`
  const within = turnWithin(parked?.destination ?? '')
  return `waits for its turn${within === undefined ? '' : `, at most about ${within}`}`
}

/** Formats the wait of a rung, such as `10 m`. */
function formatWait(ms: number): string {
  const seconds = Math.round(ms / 1_000)
  if (seconds > 0 && seconds % 3_600 === 0) return `${seconds / 3_600} h`
  return seconds > 0 && seconds % 60 === 0 ? `${seconds / 60} m` : `${seconds} s`
}

function timelineLine(record: LogRecord): string {
  const { atMs, kind, hook, attempt, job } = record
  const where = [hook, attempt > 0 ? `try ${attempt}` : '', job === '' ? '' : `replay ${plain(job)}`]
  const result = resultOf(record)
  return [timeOf(atMs), kind.padEnd(10), result, where.filter((part) => part !== '').join(', ')]
    .filter((part) => part !== '')
    .join('  ')
}

/** Returns the lines for the answer to a failed request. Returns none if the answer is '' (not stored). */
export function answerLines(answer: string): string[] {
  return answer === '' ? [] : answer.split(/\r?\n/).map((line) => `  | ${plain(line)}`)
}

/**
 * Returns a time as text. The log may have times that no `Date` can show, because earlier versions believed
 * any time that a producer gave its records. Of these times, the nearest one that can be shown is returned.
 */
export function timeOf(ms: number): string {
  return new Date(Math.min(Math.max(ms, -latestMs), latestMs)).toISOString()
}

/** The latest time of a `Date`. */
const latestMs = 8.64e15

/** Where a terminal is given, each cell but the last is cut to its column, and the row to the terminal. */
function cellsOf(cells: readonly string[], columns: number | undefined): string {
  const chosen = columns !== undefined && columns <= 100 ? narrowWidths : widths
  const row = cells
    .map((cell, at) => {
      const width = chosen[at] ?? 0
      return (columns === undefined || width === 0 ? cell : cut(cell, width)).padEnd(width)
    })
    .join('  ')
    .trimEnd()
  return columns === undefined ? row : cut(row, columns)
}

/** Cuts a text to a number of columns. Its last character then says so. */
export function cut(text: string, columns: number): string {
  return text.length <= columns ? text : `${text.slice(0, Math.max(0, columns - 1))}…`
}

/**
 * Replaces the control characters of a text. The text may come from any sender, and a terminal would treat
 * some control characters as commands.
 */
export function plain(text: string): string {
  // oxlint-disable-next-line no-control-regex -- this function looks for control characters
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, '?')
}
