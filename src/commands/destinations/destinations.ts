import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { readSelector } from '../../catalog/labels.ts'
import type { Config } from '../../config/schema.ts'
import { deadFromMs } from '../../notices/pause-record.ts'
import { aligned } from '../../roles/operations/aligned.ts'
import { askKafka } from '../../roles/start/ask-kafka.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { destinationData, listDestinations, type ListQuery } from '../../roles/operations/destination-list.ts'
import { assess, type AssessedDestination, assessOne } from '../../roles/operations/destination-conditions.ts'
import { pausesOf } from '../../roles/operations/known-pauses.ts'
import { type Picture, readPicture } from '../../roles/operations/picture.ts'
import { readCatalog, readCatalogOrCopy } from '../../roles/catalog/open-catalog.ts'
import {
  knownWithinMs,
  openPauseDesk,
  type PauseDesk,
  type ResumedDestination,
  pausedData,
  resumedData,
  timeOf,
} from '../../roles/operations/pause-desk.ts'
import {
  conditionLines,
  healthCells,
  healthHeadings,
  retryingText,
  numeral,
} from '../../roles/operations/condition-text.ts'
import type { KnownHealth } from '../../roles/operations/health-reading.ts'
import { toldOf } from '../../roles/operations/destination-health.ts'
import { dropData, dropPreviewData, refusalToDrop } from '../../roles/operations/drop-waiting.ts'
import { confirms } from '../command/question.ts'
import { previewData, refusalOf, retryData } from '../../roles/operations/retry-now.ts'
import { counted, type Screen, someOf } from '../../roles/start/progress.ts'
import type { DeskAnswer } from '../../roles/operations/replay-desk.ts'
import { kafkaSettings } from '../../roles/start/settings.ts'
import { StartError, WrongUseError } from '../../roles/start/start-error.ts'
import { whoIsThis } from '../command/operator.ts'
import { turnOn } from '../command/edit-object.ts'

export type Run = { config: Config; log: Logger; screen: Screen }

const pausesUnknown =
  'Kafka has no topic of notices, or does not show it: destinations that Sluice has paused are listed as on'

const noneMeant = 'There is no such destination'

function noneYet({ catalog: { source, file } }: Config): string {
  return source === 'file'
    ? `The catalog has no destinations yet: write them into ${file} (docs/catalog.md).`
    : 'The catalog has no destinations yet: `sluice destinations create ID --url URL --source SOURCE` makes one (docs/catalog-topic.md).'
}

export type ListCommand = Omit<ListQuery, 'limit' | 'label'> & {
  readonly label: string | undefined
  readonly limit: number | undefined
  readonly asJson: boolean
}

/** Lists destinations, by their ids, or the worst first if only some are asked for. */
export function listAll(run: Run, { label, limit, asJson, ...query }: ListCommand): Promise<string[]> {
  return atDesk(run, async (desk) => {
    const catalog = await catalogOf(run)
    const { sourceId } = query
    if (sourceId !== undefined && !catalog.sources.has(sourceId))
      throw new WrongUseError(`The catalog has no source ${JSON.stringify(sourceId)}.`)
    const selector = label === undefined ? undefined : readSelector(label)
    if (label !== undefined && selector === undefined)
      throw new WrongUseError('--label: write KEY=VALUE, such as tenant=acme.')
    const { pauses, health } = await pictureOf(run, desk)
    const { listed, total } = listDestinations(assess(catalog, pauses, health), {
      ...query,
      label: selector,
      limit: limit ?? catalog.destinations.size,
    })
    if (asJson) return listed.map((one) => JSON.stringify(destinationData(one, health)))
    if (listed.length === 0) return [catalog.destinations.size === 0 ? noneYet(run.config) : noneMeant]
    return [
      ...aligned([
        ['destination', 'state', ...healthHeadings, 'hooks', 'sources'],
        ...listed.map((one) => rowOf(one, health)),
      ]),
      ...(total > listed.length ? [`and ${numeral(total - listed.length)} more`] : []),
      asOfLine(health),
    ]
  })
}

function rowOf(one: AssessedDestination, { nowMs }: KnownHealth): readonly string[] {
  const { destination, state, goneHooks } = one
  const hooks = destination.hooks.map(({ id, origin }) =>
    goneHooks.includes(id) ? `${origin} (gone)` : origin,
  )
  return [destination.id, state, ...healthCells(one, nowMs), hooks.join(' '), someOf(destination.sources)]
}

/** Says how one destination is, and what to do. */
export function showStatus(
  run: Run,
  { destinationId, asJson }: { destinationId: string; asJson: boolean },
): Promise<string[]> {
  return atDesk(run, async (desk) => {
    const catalog = await catalogOf(run)
    const destination = catalog.destinations.get(destinationId)
    if (destination === undefined)
      throw new WrongUseError(`The catalog has no destination ${JSON.stringify(destinationId)}.`)
    const { pauses, health } = await pictureOf(run, desk)
    const one = assessOne(destination, pauses, health)
    if (asJson) return [JSON.stringify(destinationData(one, health))]
    return [...conditionLines(one, health), asOfLine(health)]
  })
}

/** Reads the catalog, and says on the screen what of it may be outdated or can't be used. */
async function catalogOf({ config, log, screen }: Run): Promise<Catalog> {
  const read = await readCatalogOrCopy(config, log, 'destinations')
  if (read.catalog === undefined) throw new StartError(read.faults)
  for (const warning of read.warnings) screen.write(`${warning}\n`)
  return read.catalog
}

export async function pictureOf(run: Run, desk: PauseDesk): Promise<Picture> {
  const picture = await readPicture(desk, run.config)
  if (!picture.pauses.areKnown) run.screen.write(`${pausesUnknown}\n`)
  return picture
}

function asOfLine({ board, nowMs }: KnownHealth): string {
  const asOfMs = board?.asOfMs(nowMs)
  return asOfMs === undefined
    ? 'what waits is not known: not all workers tell it (see docs/waiting.md)'
    : `what waits, as of ${timeOf(asOfMs)}`
}

export function listPaused(run: Run, { asJson }: { asJson: boolean }): Promise<string[]> {
  return atDesk(run, async (desk) => {
    const paused = valueOf(await desk.paused())
    if (asJson) return paused.map((one) => JSON.stringify(pausedData(one)))
    if (paused.length === 0) return ['Sluice has paused no destination']
    return paused.map(({ destinationId, pause: { atMs, sinceMs, lastOutcome, cause } }) =>
      [
        destinationId,
        `paused at ${timeOf(atMs)}`,
        `${cause === 'gone' ? 'is gone' : 'fails'} since ${timeOf(sinceMs)}`,
        lastOutcome,
      ].join('  '),
    )
  })
}

export type ResumeCommand = {
  destinationId: string | undefined
  /** True to resume all destinations that Sluice has paused. */
  isForAll: boolean
  by: string | undefined
  /** True if the command ends without waiting until all workers know that the destinations are resumed. */
  isDetached: boolean
  asJson: boolean
}

/** Resumes destinations that Sluice has paused, and waits until all workers know that they are resumed. */
export async function resumeDestinations(run: Run, command: ResumeCommand): Promise<string[]> {
  const { destinationId, isForAll, isDetached, asJson } = command
  if ((destinationId === undefined) !== isForAll)
    throw new WrongUseError('Name a destination, or give --all for all that Sluice has paused.')
  const by = command.by ?? whoIsThis()
  const turnedOn =
    destinationId !== undefined && run.config.catalog.source === 'topic'
      ? await turnOn(run, { id: destinationId, by })
      : []
  return atDesk(run, async (desk) => {
    if (turnedOn.length > 0 && !isPausedBySluice(await desk.paused(), destinationId)) return turnedOn
    const resumed =
      destinationId === undefined
        ? await resumeAll(desk, by)
        : [valueOf(await desk.resume(destinationId, by))]
    if (!isDetached && resumed.length > 0) {
      run.screen.write(
        `${counted(resumed.length, 'destination')} resumed: waiting ${knownWithinMs / 1_000} s until all workers know it\n`,
      )
      await delay(knownWithinMs)
    }
    if (asJson) return resumed.map((one) => JSON.stringify(resumedData(one)))
    if (resumed.length === 0) return ['Sluice has paused no destination']
    return resumed.flatMap(({ destinationId: id, pause: { atMs } }) => [
      `${id}  resumed: what waits is delivered`,
      `  if messages became dead letters meanwhile: sluice replay dead-letters --destination ${id} --reason auto_paused --from ${timeOf(deadFromMs(atMs))}`,
    ])
  })
}

function isPausedBySluice(
  paused: DeskAnswer<readonly { readonly destinationId: string }[]>,
  destinationId: string | undefined,
): boolean {
  return paused.ok && paused.value.some((one) => one.destinationId === destinationId)
}

/**
 * Resumes all destinations that Sluice has paused, and returns them. Leaves out a destination whose pause has
 * ended since the list was read, because somebody else has resumed it or the catalog was edited.
 */
export async function resumeAll(
  desk: Pick<PauseDesk, 'paused' | 'resume'>,
  by: string,
): Promise<readonly ResumedDestination[]> {
  const resumed: ResumedDestination[] = []
  for (const { destinationId } of valueOf(await desk.paused())) {
    const answer = await desk.resume(destinationId, by)
    if (answer.ok) resumed.push(answer.value)
  }
  return resumed
}

export type RetryNowCommand = {
  destinationId: string
  /** The id of the only message to try. */
  messageId: string | undefined
  isPreview: boolean
  by: string | undefined
  asJson: boolean
}

/** Makes the workers try now what waits for a destination on the retry topics. */
export function retryNow(run: Run, command: RetryNowCommand): Promise<string[]> {
  const { destinationId, messageId, isPreview, asJson } = command
  return atDesk(run, async (desk) => {
    const pauses = pausesOf(await desk.paused(), await desk.gone(), run.config)
    const refusal = refusalOf(
      { destinationId, messageId },
      await readCatalog(run.config, run.log, 'destinations'),
      pauses,
    )
    if (refusal?.kind === 'notFound') throw new WrongUseError(refusal.problem)
    if (refusal !== undefined) throw new StartError(refusal.problem)
    const what = messageId === undefined ? 'what waits for a retry' : `the message ${messageId}, if it waits`
    if (isPreview) {
      const waiting = toldOf(await desk.health(), destinationId)
      if (asJson) return [JSON.stringify(previewData({ destinationId, messageId }, waiting.retrying))]
      const many = messageId === undefined ? [`  ${retryingText(waiting)} wait for their next try`] : []
      return [`${destinationId}  ${what} would be tried now`, ...many]
    }
    const asked = retryData(
      valueOf(await desk.retryNow({ destinationId, messageId, by: command.by ?? whoIsThis() })),
    )
    if (asJson) return [JSON.stringify(asked)]
    return [
      `${destinationId}  ${what} is tried now: workers begin within ${asked.workersKnowWithinSeconds} s`,
      `  see what comes of it: sluice log tail --destination ${destinationId}`,
    ]
  })
}

export type DropCommand = {
  destinationId: string
  /** True if the command is to drop what waits. Nothing else can be dropped. */
  isOfWaiting: boolean
  isPreview: boolean
  /** True if the question is answered already. */
  isSure: boolean
  by: string | undefined
  asJson: boolean
}

/** Makes dead letters of what waits for a destination, after a question. */
export async function dropWaiting(run: Run, command: DropCommand): Promise<string[]> {
  const { destinationId, isOfWaiting, isPreview, isSure, asJson } = command
  if (!isOfWaiting) throw new WrongUseError('Say what to drop: --waiting makes dead letters of what waits.')
  return atDesk(run, async (desk) => {
    const refusal = refusalToDrop(destinationId, await readCatalog(run.config, run.log, 'destinations'))
    if (refusal !== undefined) throw new WrongUseError(refusal.problem)
    const waiting = toldOf(await desk.health(), destinationId)
    const { messages } = waiting
    const many =
      messages === undefined ? 'the messages (how many is not known)' : counted(messages, 'message')
    const what = `${many} in the queue of ${destinationId}, and what waits for its next try (${retryingText(waiting)})`
    if (isPreview) {
      if (asJson) return [JSON.stringify(dropPreviewData(destinationId, waiting))]
      return [`${destinationId}  would become dead letters: ${what}`]
    }
    if (!isSure && !(await confirms(run.screen, `Make dead letters of ${what}?`))) return ['nothing dropped']
    const given = valueOf(await desk.drop({ destinationId, by: command.by ?? whoIsThis() }))
    const data = dropData(given, waiting)
    if (asJson) return [JSON.stringify(data)]
    return [
      `${destinationId}  become dead letters: ${what}. Workers begin within ${data.workersKnowWithinSeconds} s`,
      `  send them after all: sluice replay dead-letters --destination ${destinationId} --reason dropped`,
    ]
  })
}

export async function atDesk<T>(
  { config, log, screen }: Run,
  work: (desk: PauseDesk) => Promise<T>,
): Promise<T> {
  kafkaSettings(config)
  const desk = await openPauseDesk({
    config,
    log,
    role: 'destinations',
    say: (line) => screen.write(`${line}\n`),
  })
  try {
    return await askKafka(config, work(desk))
  } finally {
    await desk.stop()
  }
}

function valueOf<T>(answer: DeskAnswer<T>): T {
  if (answer.ok) return answer.value
  throw new StartError(answer.problem)
}
