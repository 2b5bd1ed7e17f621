import type { HealthBoard, ProcessHealth } from '../../health/health-board.ts'
import { counted } from '../start/progress.ts'
import { aligned } from './aligned.ts'
import { nextCommandOf, numeral, spoken, timeOrNull, whyOf } from './condition-text.ts'
import {
  type AssessedDestination,
  type Condition,
  conditions,
  needsAttention,
  worstFirst,
} from './destination-conditions.ts'
import type { Picture } from './picture.ts'
import { timeOf } from './pause-desk.ts'

/** How many destinations that need attention are shown. */
const mostShown = 10
/** How many workers are shown line by line. */
const mostWorkers = 6

/** The state of an installation. */
export type Status = {
  readonly picture: Picture
  readonly workers: readonly ProcessHealth[]
  /** How many units have an owner that tells, of how many. `undefined`: no worker tells. */
  readonly units: { readonly told: number; readonly of: number } | undefined
  readonly counts: Readonly<Record<Condition, number>>
  /** `undefined`: not known. */
  readonly total: number | undefined
  /** The sums of all workers. `undefined`: not all workers tell. */
  readonly totals: Totals | undefined
  /** The destinations that need attention, the worst first. */
  readonly attention: readonly AssessedDestination[]
  /** The number of destinations that fail and of which no worker tells more. */
  readonly untold: number
  /** What isn't known, in sentences. */
  readonly unknown: readonly string[]
}

type Totals = {
  readonly lag: number
  /** Since when the oldest of these records has been in Kafka, in epoch milliseconds. */
  readonly oldestMs: number | undefined
  readonly retrying: number
  readonly waiting: number
}

/**
 * `known`: the destinations. `undefined`: the catalog can't be read. `ofCatalog`: why it may be outdated.
 */
export function statusOf(
  picture: Picture,
  known: readonly AssessedDestination[] | undefined,
  ofCatalog: readonly string[] = [],
): Status {
  const all = known ?? []
  const { board, nowMs } = picture.health
  const workers = board?.processes(nowMs) ?? []
  const units = unitsOf(workers)
  const isComplete = board?.asOfMs(nowMs) !== undefined
  const counts = countsOf(all)
  const untold = Math.max(0, ...workers.map((worker) => worker.untold ?? 0))
  return {
    picture,
    workers,
    units,
    counts,
    total: known?.length,
    totals: isComplete ? totalsOf(workers, all) : undefined,
    attention: all.filter(needsAttention).toSorted(worstFirst),
    untold,
    unknown: [...ofCatalog, ...unknownOf(picture, { board, workers, units, isComplete, untold })],
  }
}

function countsOf(all: readonly AssessedDestination[]): Status['counts'] {
  const counts = { failing: 0, gone: 0, auto_paused: 0, paced: 0, paused: 0, unknown: 0, healthy: 0, off: 0 }
  for (const { condition } of all) counts[condition]++
  return counts
}

function unitsOf(workers: readonly ProcessHealth[]): Status['units'] {
  if (workers.length === 0) return undefined
  const told = new Set(workers.flatMap(({ units }) => units)).size
  return { told, of: Math.max(...workers.map(({ of }) => of)) }
}

function totalsOf(
  workers: readonly ProcessHealth[],
  all: readonly AssessedDestination[],
): Totals | undefined {
  if (workers.some(({ lag }) => lag === undefined)) return undefined
  const oldest = workers.flatMap(({ oldestMs }) => (oldestMs === undefined ? [] : [oldestMs]))
  return {
    lag: sum(workers.map(({ lag }) => lag ?? 0)),
    oldestMs: oldest.length === 0 ? undefined : Math.min(...oldest),
    retrying: sum(workers.map(({ retrying }) => retrying ?? 0)),
    waiting: sum(all.map(({ health }) => health.messages ?? 0)),
  }
}

function unknownOf(
  { pauses }: Picture,
  {
    board,
    workers,
    units,
    isComplete,
    untold,
  }: Pick<Status, 'workers' | 'units' | 'untold'> & { board: HealthBoard | undefined; isComplete: boolean },
): readonly string[] {
  const unknown: string[] = []
  if (board === undefined)
    unknown.push(
      'What fails and what waits: the topic health does not exist, or can not be read (`sluice topics apply` creates it).',
    )
  else if (units === undefined)
    unknown.push('What fails and what waits: no worker has told anything in the last 20 s.')
  else if (!isComplete)
    unknown.push(
      `What fails and what waits in ${units.of - units.told} of ${units.of} units: no worker that owns them tells.`,
    )
  const earlier = workers.filter(({ version }) => version === undefined)
  if (earlier.length > 0)
    unknown.push(
      `Which URLs fail for ${counted(earlier.length, 'worker')}: an earlier version runs there, which does not tell it.`,
    )
  for (const worker of workers)
    if (worker.catalogTrouble !== undefined)
      unknown.push(
        `Whether ${nameOf(worker)} has the present catalog: it uses ${copyText(worker.catalogCopyMs)}. ${worker.catalogTrouble}`,
      )
  if (untold > 0) unknown.push(`Which ${numeral(untold)} more destinations fail: there are too many to tell.`)
  if (!pauses.areKnown)
    unknown.push(
      'Which destinations Sluice has paused: the topic notices does not exist, or can not be read.',
    )
  return unknown
}

function copyText(copyMs: number | undefined): string {
  return copyMs === undefined ? 'what it has in memory' : `its copy of ${timeOf(copyMs)}`
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}

/** Returns the status as the HTTP API and `--json` show it. What isn't known is null. */
export function statusData({ picture, workers, units, counts, total, totals, ...rest }: Status) {
  const { asOfMs } = picture
  return {
    asOf: timeOf(asOfMs),
    workers: workers.map((worker) => ({
      name: nameOf(worker),
      version: worker.version ?? null,
      startedAt: timeOrNull(worker.startedMs),
      units: worker.units.length,
      toldAt: timeOf(worker.seenMs),
      catalogTrouble: worker.catalogTrouble ?? null,
      catalogCopyAt: timeOrNull(worker.catalogCopyMs),
    })),
    units: units ?? null,
    lag: totals === undefined ? null : { records: totals.lag, oldestAt: timeOrNull(totals.oldestMs) },
    retrying: totals?.retrying ?? null,
    waiting: totals?.waiting ?? null,
    destinations: { total: total ?? null, ...counts },
    attention: rest.attention.slice(0, mostShown).map((one) => ({
      destination: one.destination.id,
      name: one.destination.name,
      condition: one.condition,
      since: timeOrNull(one.sinceMs),
      why: whyOf(one, asOfMs),
      next: nextCommandOf(one),
    })),
    needAttention: rest.attention.length,
    untold: rest.untold,
    unknown: rest.unknown,
  }
}

/** Returns the status as text for a screen. */
export function statusLines(status: Status): readonly string[] {
  const { picture, attention, unknown } = status
  return [
    `Sluice, as of ${timeOf(picture.asOfMs)}`,
    '',
    ...aligned(summary(status)),
    '',
    ...attentionLines(status),
    ...(unknown.length === 0 ? [] : ['', 'Not known:', ...unknown.map((text) => `- ${text}`)]),
    ...(attention.length > mostShown
      ? ['', `${numeral(attention.length - mostShown)} more: sluice destinations list --state failing`]
      : []),
  ]
}

function summary({ picture, workers, units, counts, total, totals }: Status): string[][] {
  const { asOfMs } = picture
  const listed = conditions.filter((one) => counts[one] > 0).map((one) => `${numeral(counts[one])} ${one}`)
  const owned = units === undefined ? '' : `, ${units.told} of ${units.of} units have an owner that tells`
  const age = totals?.oldestMs === undefined ? '' : `, the oldest for ${spoken(asOfMs - totals.oldestMs)}`
  return [
    ['workers', `${workers.length}${owned}`],
    ...workers.slice(0, mostWorkers).map((worker) => ['', workerText(worker, asOfMs)]),
    ...(workers.length > mostWorkers ? [['', `and ${workers.length - mostWorkers} more`]] : []),
    ['backlog', totals === undefined ? '?' : `${counted(totals.lag, 'record')} not settled${age}`],
    [
      'retries',
      totals === undefined ? '?' : `${counted(totals.retrying, 'message')} wait for their next try`,
    ],
    ['waiting', totals === undefined ? '?' : `${counted(totals.waiting, 'message')} wait for their turn`],
    [
      'destinations',
      `${total === undefined ? '?' : numeral(total)}${listed.length === 0 ? '' : `: ${listed.join(', ')}`}`,
    ],
  ]
}

function workerText(worker: ProcessHealth, asOfMs: number): string {
  const { version, startedMs, units, seenMs } = worker
  return [
    nameOf(worker),
    version ?? 'an earlier version',
    counted(units.length, 'unit'),
    ...(startedMs === undefined ? [] : [`for ${spoken(asOfMs - startedMs)}`]),
    `told ${spoken(asOfMs - seenMs)} ago`,
  ].join('  ')
}

/** The host and the process id. The rest of a writer's name only makes it unique. */
function nameOf({ writer }: ProcessHealth): string {
  return writer.split(':').slice(0, 2).join(':')
}

function attentionLines({ attention, picture, unknown }: Status): readonly string[] {
  if (attention.length === 0)
    return [
      unknown.length === 0 ? 'No destination needs attention.' : 'No destination is known to need attention.',
    ]
  const rows = attention
    .slice(0, mostShown)
    .map((one) => [
      one.destination.id,
      one.condition,
      one.sinceMs === undefined ? '' : timeOf(one.sinceMs).replace(/\.\d+Z$/, 'Z'),
      whyOf(one, picture.asOfMs),
      nextCommandOf(one),
    ])
  return aligned([['destination', 'condition', 'since', 'why', 'next'], ...rows])
}
