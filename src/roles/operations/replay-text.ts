import { plain } from '../../delivery-log/lines.ts'
import type { FoldedEntry } from '../../replay/audit-trail.ts'
import { type Job, stateOf } from '../../replay/jobs.ts'
import type { Group } from '../../replay/groups.ts'
import { passed } from '../../replay/pieces.ts'
import { describeSelection } from '../../replay/selection.ts'
import { leftOutCount, type Tally } from '../../replay/replay-tally.ts'
import type { LeftOutReason } from '../../replay/chosen.ts'
import { aligned } from './aligned.ts'
import type { Preview } from './replay-desk.ts'
import { counted, grouped } from '../start/progress.ts'

// Formats replays for people and for programs. Control characters are removed from lines for people, because
// the texts aren't trusted. The message id of a selection may come from any sender, and other texts come from
// anybody who may create a replay.

const meanings: Readonly<Record<LeftOutReason, string>> = {
  value_omitted: 'were too large for the dead letters to have their message',
  not_replayable: 'can not be sent again: parts of a sync, states of an audience, or without a source',
  unreadable: 'can not be read as a message',
  destination_off: 'are for a destination that is off',
  destination_removed: 'are for a destination that the catalog does not have',
  auto_paused: 'are for a destination that Sluice has paused: resume it first',
  source_unknown: 'are from a source that the catalog does not have',
  source_off: 'are from a source that is disabled',
  no_destination: 'are from a source to which no destination is connected',
  filtered: 'are excluded by their integrations, or by the filter of the destination',
  filter_failed: 'the condition of the destination can not be evaluated for: correct it first',
  too_large: 'are larger than any topic takes',
  already_replayed: 'another replay has sent or is about to: --again sends them all the same',
}

/** The most groups of a preview that are printed. `--json` has more. */
const mostGroupLines = 20

export function previewLines({ selection, tally, groups, isComplete }: Preview): string[] {
  return [
    `asked    ${describeSelection(selection)}`,
    `found    ${counted(tally.records, 'record')}, ${inBytes(tally.bytes)}${isComplete ? '' : ', and more: not all was looked at'}`,
    ...groupLines(groups),
    ...leftOutLines(tally),
  ].map(plain)
}

function groupLines(groups: readonly Group[]): string[] {
  const rows = groups
    .slice(0, mostGroupLines)
    .map(({ destinationId = '-', reason = '-', records, bytes }) => [
      `  ${grouped(records)}`,
      inBytes(bytes),
      `to ${destinationId}`,
      reason,
    ])
  const rest = groups.slice(mostGroupLines)
  if (rest.length === 0) return aligned(rows)
  const records = rest.reduce((sum, group) => sum + group.records, 0)
  return [...aligned(rows), `  ${grouped(records)} in ${counted(rest.length, 'other group')}: see --json`]
}

export function groupData({ destinationId, reason, records, bytes }: Group) {
  return { destination: destinationId ?? null, reason: reason ?? null, records, bytes }
}

function leftOutLines(tally: Tally): string[] {
  return Object.entries(tally.leftOut).map(
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- keys of a tally
    ([why, count]) => `left out ${grouped(count)} that ${meanings[why as LeftOutReason]} (${why})`,
  )
}

export function jobLines(job: Job): string[] {
  const { order, wish, progress } = job
  const lines = [
    `replay   ${order.id}`,
    `state    ${stateOf(job)}${wish.detail === undefined ? '' : `: ${wish.detail}`}`,
    `asked    ${describeSelection(order.selection)}`,
    `by       ${order.by}, at ${new Date(order.atMs).toISOString()}, at most ${grouped(order.perSecond)} a second`,
    `sent     ${grouped(progress?.done.records ?? 0)}${order.counted === undefined ? '' : ` of ${grouped(order.counted.records)}`}, ${inBytes(progress?.done.bytes ?? 0)}`,
  ]
  if (stateOf(job) === 'delivering') lines.push(`waiting  ${waitsText(job)}`)
  if (progress !== undefined) {
    lines.push(...leftOutLines(progress.done))
    lines.push(
      `owner    ${progress.owner}, the ${ordinal(progress.term)}; noted at ${new Date(progress.atMs).toISOString()}`,
    )
  }
  return lines.map(plain)
}

export function auditLine({ atMs, lastMs, count: times, action, by, records, detail }: FoldedEntry): string {
  const folded = times === 1 ? '' : `, ${grouped(times)} times until ${new Date(lastMs).toISOString()}`
  const count = records === undefined ? '' : `, ${grouped(records)} records`
  return plain(`${new Date(atMs).toISOString()}  ${action.padEnd(10)}  ${by}${folded}${count}: ${detail}`)
}

/** Returns a table with one line per replay, newest first. */
export function jobTable(jobs: readonly Job[]): string[] {
  const rows = jobs.map((job) => {
    const { order, progress } = job
    const total = order.counted === undefined ? '' : ` of ${grouped(order.counted.records)}`
    return [
      order.id,
      stateOf(job),
      `${grouped(progress?.done.records ?? 0)}${total}`,
      order.by,
      describeSelection(order.selection),
    ].map(plain)
  })
  return aligned([['replay', 'state', 'sent', 'by', 'of'], ...rows])
}

/** Returns a replay as the HTTP API and `--json` show it. */
export function jobData(job: Job) {
  const { order, wish, progress } = job
  const reading = passed(order.ranges, progress?.offsets ?? [])
  return {
    id: order.id,
    state: stateOf(job),
    detail: wish.detail ?? '',
    selection: selectionData(order.selection),
    perSecond: order.perSecond,
    again: order.again === true,
    createdBy: order.by,
    createdAt: new Date(order.atMs).toISOString(),
    counted: order.counted === undefined ? null : tallyData(order.counted),
    sent: tallyData(progress?.done ?? { records: 0, bytes: 0, leftOut: {} }),
    read: { offsets: reading.passed, of: reading.all },
    waiting: progress?.isOver === true ? 0 : (progress?.waits ?? null),
    secondsLeft: secondsLeft(job) ?? null,
    owner: progress?.owner ?? null,
    owners: progress?.term ?? 0,
    notedAt: progress === undefined ? null : new Date(progress.atMs).toISOString(),
  }
}

export function selectionData(selection: Job['order']['selection']) {
  const { from, destinationId, sourceId, reason, messageId, fromMs, toMs } = selection
  return {
    of: from,
    ...(destinationId !== undefined && { destination: destinationId }),
    ...(sourceId !== undefined && { source: sourceId }),
    ...(reason !== undefined && { reason }),
    ...(messageId !== undefined && { messageId }),
    ...(fromMs !== undefined && { from: new Date(fromMs).toISOString() }),
    ...(toMs !== undefined && { to: new Date(toMs).toISOString() }),
  }
}

export function tallyData({ records, bytes, leftOut }: Tally) {
  return { records, bytes, leftOut }
}

/**
 * Returns how many seconds a replay still takes at its rate. Returns `undefined` if the number of records is
 * unknown.
 */
export function secondsLeft(job: Job): number | undefined {
  const { order, progress } = job
  if (stateOf(job) === 'done') return 0
  if (order.counted === undefined) return undefined
  return Math.ceil(Math.max(0, order.counted.records - (progress?.done.records ?? 0)) / order.perSecond)
}

/** Says how many records of a replay that are handed over still wait. */
export function waitsText({ progress }: Job): string {
  const { waits } = progress ?? {}
  return waits === undefined ? 'how many still wait is not known yet' : `at most ${grouped(waits)} still wait`
}

/** Formats seconds, such as `1:05:09` or `0:07`. */
export function clock(seconds: number): string {
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  const end = String(rest).padStart(2, '0')
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}:${end}` : `${minutes}:${end}`
}

/** Returns the result of a replay, as the last line of a command. */
export function endLine(job: Job): string {
  const { records } = job.progress?.done ?? { records: 0 }
  const left = leftOutCount(job.progress?.done ?? { records: 0, bytes: 0, leftOut: {} })
  const out = left === 0 ? '' : `, ${grouped(left)} left out`
  const { isHandedOver = false, waits = 0 } = job.progress ?? {}
  const isStopped = stateOf(job) === 'stopped'
  const still = isStopped && isHandedOver && waits > 0 ? `, ${waitsText(job)}, and are still delivered` : ''
  return `${isStopped ? 'stopped ' : 'done    '} ${counted(records, 'record')} sent again${out}${still}`
}

function inBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(1)} kB`
  if (bytes < 1_000_000_000) return `${(bytes / 1_000_000).toFixed(1)} MB`
  return `${(bytes / 1_000_000_000).toFixed(1)} GB`
}

function ordinal(count: number): string {
  return count === 1 ? 'first' : `${count}.`
}

export function auditData({
  atMs,
  lastMs,
  count: times,
  by,
  action,
  job,
  destination,
  ...rest
}: FoldedEntry) {
  const { records, detail } = rest
  return {
    at: new Date(atMs).toISOString(),
    lastAt: new Date(lastMs).toISOString(),
    count: times,
    by,
    action,
    replay: job ?? null,
    destination: destination ?? null,
    records: records ?? null,
    detail,
  }
}
