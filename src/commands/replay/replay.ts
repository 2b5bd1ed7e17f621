import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { parseTimestamp } from '../../message/timestamp.ts'
import { type Job, stateOf } from '../../replay/jobs.ts'
import { passed } from '../../replay/pieces.ts'
import { faultsOf, type ReplaySource, takesEverything } from '../../replay/selection.ts'
import { askKafka } from '../../roles/start/ask-kafka.ts'
import { readCatalog } from '../../roles/catalog/open-catalog.ts'
import { grouped, Progress, type Screen } from '../../roles/start/progress.ts'
import {
  type DeskAnswer,
  defaultPerSecond,
  mostPerSecond,
  openReplayDesk,
  type Preview,
  type ReplayDesk,
} from '../../roles/operations/replay-desk.ts'
import {
  auditData,
  auditLine,
  clock,
  endLine,
  groupData,
  jobData,
  jobLines,
  jobTable,
  previewLines,
  secondsLeft,
  selectionData,
  tallyData,
  waitsText,
} from '../../roles/operations/replay-text.ts'
import { kafkaSettings } from '../../roles/start/settings.ts'
import { StartError, WrongUseError } from '../../roles/start/start-error.ts'
import { whoIsThis } from '../command/operator.ts'

export type ReplayCommand = {
  from: ReplaySource
  destinationId: string | undefined
  sourceId: string | undefined
  reason: string | undefined
  messageId: string | undefined
  /** The start of the time range, in ISO 8601. `until` is the end of the range. */
  since: string | undefined
  until: string | undefined
  /** The records per second, by default 1,000. */
  rate: string | undefined
  by: string | undefined
  /** True to take everything, if no condition limits the records. */
  isAll: boolean
  /** True to send what other replays have sent, too. */
  isAgain: boolean
  isDryRun: boolean
  /** True if the command ends once the replay is requested, without waiting for the end of the replay. */
  isDetached: boolean
  asJson: boolean
}

type Run = { config: Config; log: Logger; screen: Screen }

/**
 * Counts the selected records, orders the workers to send these records again, and shows the progress. The
 * replay continues even if the command ends early. Returns the count and the result in lines.
 */
export async function replay(run: Run, command: ReplayCommand): Promise<string[]> {
  const perSecond = rateOf(command.rate)
  const { from, destinationId, sourceId, reason, messageId } = command
  const fromMs = timeOf('--from', command.since)
  const toMs = timeOf('--to', command.until)
  const selection = { from, destinationId, sourceId, reason, messageId, fromMs, toMs }
  const [fault] = faultsOf(selection)
  if (fault !== undefined) throw new WrongUseError(`--${fault.field}: ${fault.problem}.`)
  if (takesEverything(selection) && !command.isAll && !command.isDryRun)
    throw new WrongUseError(takesAll(from))
  return atDesk(run, async (desk) => {
    const preview = valueOf(await counting(desk, run, selection, command.isAgain))
    const found = command.asJson ? [JSON.stringify(previewJson(preview))] : previewLines(preview)
    if (command.isDryRun) return command.asJson ? found : [...found, 'nothing sent']
    if (preview.tally.records === 0) return command.asJson ? found : [...found, 'nothing to send']
    const job = await desk.create(preview, { perSecond, by: command.by ?? whoIsThis() })
    if (!command.isDetached) return [...found, ...(await watch(desk, run, job, command.asJson))]
    return [...found, ...(command.asJson ? [JSON.stringify(jobData(job))] : jobLines(job))]
  })
}

function takesAll(from: ReplaySource): string {
  const flags = from === 'events' ? '' : '--destination, --reason, '
  const what = from === 'events' ? 'events' : 'dead letters'
  return `this would send all ${what} that Kafka still has: say which, by ${flags}--source, --message-id, --from or --to, or add --all. --dry-run counts them, and sends nothing.`
}

function previewJson({ selection, tally, groups }: Preview) {
  return {
    selection: selectionData(selection),
    counted: tallyData(tally),
    groups: groups.map(groupData),
  }
}

export type ReplayLookup = { asJson: boolean; by?: string | undefined }

export function listReplays(run: Run, { asJson }: ReplayLookup): Promise<string[]> {
  return atDesk(run, async (desk) => {
    const jobs = await desk.list()
    if (asJson) return jobs.map((job) => JSON.stringify(jobData(job)))
    return jobs.length === 0 ? ['there are no replays'] : jobTable(jobs)
  })
}

export function showReplay(run: Run, id: string, { asJson }: ReplayLookup): Promise<string[]> {
  return atDesk(run, async (desk) => {
    const job = valueOf(await desk.show(id))
    const audit = (await desk.audit({ job: id })).entries.toReversed()
    if (asJson) return [JSON.stringify({ ...jobData(job), audit: audit.map(auditData) })]
    return [...jobLines(job), ...audit.map(auditLine)]
  })
}

/**
 * Asks the workers to stop or resume a replay. Anybody may stop or resume a replay, whoever has requested it.
 */
export function requestReplay(
  run: Run,
  id: string,
  state: 'run' | 'stop',
  { asJson, by }: ReplayLookup,
): Promise<string[]> {
  return atDesk(run, async (desk) => {
    const job = valueOf(await desk.wish(id, state, by ?? whoIsThis()))
    return asJson ? [JSON.stringify(jobData(job))] : jobLines(job)
  })
}

async function atDesk(
  { config, log, screen }: Run,
  work: (desk: ReplayDesk) => Promise<string[]>,
): Promise<string[]> {
  kafkaSettings(config)
  const catalog = await readCatalog(config, log, 'replay')
  const desk = await openReplayDesk({
    config,
    log,
    role: 'replay',
    catalog: () => catalog,
    say: (line) => screen.write(`${line}\n`),
  })
  try {
    return await askKafka(config, work(desk))
  } finally {
    await desk.stop()
  }
}

async function counting(
  desk: ReplayDesk,
  { screen }: Run,
  selection: Parameters<ReplayDesk['preview']>[0],
  isAgain: boolean,
): ReturnType<ReplayDesk['preview']> {
  let progress: Progress | undefined
  try {
    return await desk.preview(selection, {
      isAgain,
      onProgress(done, all, { records }) {
        progress ??= new Progress(screen, 'counting', all)
        progress.at(done, () => `${grouped(records)} found`)
      },
    })
  } finally {
    progress?.abandon()
  }
}

const lookEveryMs = 1_000
const unheardAfterMs = 15_000

/** Shows the progress of a replay until it is done or stopped. */
async function watch(desk: ReplayDesk, { screen }: Run, begun: Job, asJson: boolean): Promise<string[]> {
  const { id, counted, ranges } = begun.order
  const progress = new Progress(screen, 'sending', counted?.records ?? passed(ranges, []).all)
  progress.note(`replay ${id}: \`sluice replay stop ${id}\` stops it, the end of this command does not`)
  try {
    return await untilEnded(desk, begun, { progress, asJson })
  } catch (error) {
    progress.abandon()
    throw error
  }
}

async function untilEnded(
  desk: ReplayDesk,
  { order: { id, counted, ranges } }: Job,
  { progress, asJson }: { progress: Progress; asJson: boolean },
): Promise<string[]> {
  const startedMs = performance.now()
  let isUnheard = false
  let isHandedOver = false
  const stall = createStallWatch((line) => progress.note(line))
  for (;;) {
    const job = valueOf(await desk.show(id))
    const state = stateOf(job)
    const sent = job.progress?.done.records ?? 0
    if (state === 'done' || state === 'stopped') {
      progress.end(sent, `${grouped(sent)} sent`)
      const detail = job.wish.detail === undefined ? '' : `: ${job.wish.detail}`
      if (asJson) return [JSON.stringify(jobData(job))]
      return [`replay   ${id}`, `${endLine(job)}${detail}`]
    }
    if (state === 'waiting' && !isUnheard && performance.now() - startedMs > unheardAfterMs) {
      isUnheard = true
      progress.note('no worker has begun it yet: the workers of this group do replays, see that they run')
    }
    if (state === 'delivering' && !isHandedOver) {
      isHandedOver = true
      progress.note('all are handed over: it is done when none of them waits for its turn any more')
    }
    if (state === 'running') stall(job, performance.now())
    const at = counted === undefined ? passed(ranges, job.progress?.offsets ?? []).passed : sent
    const left = secondsLeft(job)
    const rest = left === undefined ? '' : `, ${clock(left)} left`
    progress.at(at, () => `${grouped(sent)} sent${state === 'delivering' ? `, ${waitsText(job)}` : rest}`)
    await delay(lookEveryMs)
  }
}

function valueOf<T>(answer: DeskAnswer<T>): T {
  if (answer.ok) return answer.value
  throw new StartError(answer.problem)
}

function rateOf(given: string | undefined): number {
  if (given === undefined) return defaultPerSecond
  const rate = Number(given)
  if (Number.isInteger(rate) && rate >= 1 && rate <= mostPerSecond) return rate
  throw new WrongUseError(
    `--rate has to be a whole number from 1 to ${grouped(mostPerSecond)}: records a second.`,
  )
}

function timeOf(flag: string, given: string | undefined): number | undefined {
  if (given === undefined) return undefined
  const timeMs = parseTimestamp(given)
  if (timeMs !== undefined) return timeMs
  throw new WrongUseError(`${flag} is no time: write ISO 8601, such as 2026-01-31T12:00:00Z.`)
}

const stalledAfterMs = 30_000

/**
 * Returns a function that looks at a running replay at the time `nowMs`. If the replay makes no progress for
 * 30 seconds, the function calls `say`, once for each stall.
 */
export function createStallWatch(say: (line: string) => void): (job: Job, nowMs: number) => void {
  let last: string | undefined
  let sinceMs = 0
  let isSaid = false
  return function look({ order, progress }, nowMs) {
    // An owner that fails writes a note for each try. So only the position and the counts show progress.
    const position = JSON.stringify([progress?.offsets, progress?.done])
    if (position !== last) {
      last = position
      sinceMs = nowMs
      isSaid = false
      return
    }
    if (isSaid || nowMs - sinceMs < stalledAfterMs) return
    isSaid = true
    say(
      `no progress for ${stalledAfterMs / 1_000} s: either its messages are delivered more slowly than ` +
        `${order.perSecond} a second, or the worker ${progress?.owner} can not continue: see that worker's log`,
    )
  }
}
