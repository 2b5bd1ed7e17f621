import { rename, rm } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { beginToFill } from '../../backfill/begin.ts'
import { CurrentStates, type StateFilter } from '../../backfill/current-states.ts'
import { decodeMark, encodeMark, type Mark, Marks, needsBackfill } from '../../backfill/marks.ts'
import { type BackfillPosition, type BackfillScope, encodePosition } from '../../backfill/position.ts'
import { type ReplayRecord, replayOf } from '../../backfill/replay-record.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { Config } from '../../config/schema.ts'
import type { CatalogTopicLog } from '../../roles/catalog/load-topic.ts'
import { createPartitionReader, type PartitionReader } from '../../kafka/read/partition-reader.ts'
import { topicIdsOf } from '../../topics/topic-grow.ts'
import { countPartitions } from '../../topics/topic-partitions.ts'
import { TokenBucket } from '../../async/token-bucket.ts'
import { askKafka, openKafka } from '../../roles/start/ask-kafka.ts'
import { faults, readPosition, refuseUnwritable, writePart } from './backfill-state-file.ts'
import { readCatalog } from '../../roles/catalog/open-catalog.ts'
import { refuseOtherLayout, refusingOtherLayout } from '../../roles/start/growth-journal.ts'
import { counted, grouped, Progress, type Screen } from '../../roles/start/progress.ts'
import type { TopicNames } from '../../topics/topics.ts'
import { kafkaSettings, topicNames } from '../../roles/start/settings.ts'
import { StartError, WrongUseError } from '../../roles/start/start-error.ts'
import { readingInput } from '../command/upstream-input.ts'
import { openWriter, type Writer } from '../../roles/operations/record-writer.ts'

type Log = CatalogTopicLog

export type BackfillOptions = {
  spaceId: string
  destinationId: string
  /** The audience to send. If `undefined`, all audiences and traits of the space are sent. */
  audienceId: string | undefined
  property: string | undefined
  /**
   * True to include users who have left the audience. They are needed if the destination has missed changes.
   */
  withLeft: boolean
  /** The Identifies per second, by default 1,000. */
  rate: string | undefined
  /** The file that says where the next run continues. The file is removed when the backfill ends. */
  stateFile: string | undefined
  isDryRun: boolean
}

const defaultRate = 1_000
const mostRate = 1_000_000
const mostAtOnce = 500
const batchesPerSecond = 4
const noteEveryMs = 1_000
const readStallMs = 60_000

/**
 * Writes the present values of a space's audiences and traits to `replays` for one destination, unit by unit,
 * within a rate. The worker delivers these records after all other records. If a value changes meanwhile, the
 * new value is delivered as usual, and the backfill's value isn't sent after it. Returns a summary in lines.
 *
 * A mark in the topic `backfills` says that a destination lacks values of a space. A backfill of the whole
 * space that includes users who have left removes the mark. The mark stays if the destination has missed
 * values since the backfill began. If deliveries of the backfill fail, the destination is marked again.
 */
export async function backfill(
  config: Config,
  log: Log,
  options: BackfillOptions,
  screen: Screen,
): Promise<string[]> {
  const rate = rateOf(options.rate)
  kafkaSettings(config)
  const topics = topicNames(config)
  refuseUselessTarget(await readCatalog(config, log, 'audience backfill'), options)
  const kafka = await openKafka(config, log, 'audience backfill')
  await refuseOtherLayout(kafka, config)
  const partitions = await partitionsOf(config, kafka, topics)
  const ids = await askKafka(config, topicIdsOf(kafka, [topics.memberships, topics.backfills]))
  const scope: BackfillScope = {
    prefix: config.kafka.topicPrefix,
    partitions,
    spaceId: options.spaceId,
    destinationId: options.destinationId,
    audienceId: options.audienceId ?? null,
    property: options.property ?? null,
    withLeft: options.withLeft,
    membershipsId: ids.get(topics.memberships),
    backfillsId: ids.get(topics.backfills),
  }
  const start = await readPosition(options, scope)
  await refuseUnwritable(options)
  const reader = createPartitionReader(kafka)
  const progress = new Progress(screen, options.isDryRun ? 'counting' : 'sending', partitions)
  const run = new Run({ config, log, options, scope, topics, reader, progress, rate, start })
  try {
    const { sent, left, mark } = await askKafka(config, run.go(), () => run.advice())
    progress.end(partitions, counted(sent, 'Identify'))
    const what = `${grouped(sent)} of space ${options.spaceId} for destination ${options.destinationId}`
    if (options.isDryRun) return [`members  ${what}`, 'nothing sent']
    if (options.stateFile !== undefined) await rm(options.stateFile, { force: true })
    const before = left === 0 ? '' : ` (${grouped(left)} of them in an earlier run)`
    return [`sent     ${what}${before} to ${topics.replays}`, ...markLines(mark, options)]
  } catch (error) {
    progress.abandon()
    // If the position can't be noted now, this second error is ignored, and the first error is thrown. The
    // position that was noted before stays, and the next run can continue from it.
    await run.note().catch(() => undefined)
    throw error
  } finally {
    await run.stop()
    await reader.stop()
  }
}

type RunOptions = {
  config: Config
  log: Log
  options: BackfillOptions
  scope: BackfillScope
  topics: TopicNames
  reader: PartitionReader
  progress: Progress
  rate: number
  /** The position to continue from. If `undefined`, the run starts at the beginning. */
  start: BackfillPosition | undefined
}

/**
 * The fate of the mark which says that the destination needs a backfill. With `none`, there was no mark. With
 * `down`, the mark was removed. With `stays`, the mark stays.
 */
type MarkEnd = 'none' | 'down' | 'stays'

function markLines(mark: MarkEnd, { destinationId, spaceId }: BackfillOptions): string[] {
  switch (mark) {
    case 'none':
      return []
    case 'down':
      return [`mark     taken down: ${destinationId} has missed nothing more of ${spaceId}`]
    case 'stays':
      return [
        `mark     stays: ${destinationId} needs a backfill of all of ${spaceId}, with --with-left and neither --audience nor --property`,
      ]
  }
}

/** A run of `sluice audience backfill`. It may continue an earlier run that was interrupted. */
class Run {
  readonly #given: RunOptions
  readonly #filter: StateFilter
  readonly #bucket: TokenBucket
  readonly #mostAtOnce: number
  readonly #start: BackfillPosition
  #position: BackfillPosition
  #writer: Writer | undefined
  #notedMs = performance.now()

  constructor(given: RunOptions) {
    const { spaceId, audienceId, property, withLeft } = given.options
    this.#given = given
    this.#filter = { spaceId, audienceId, property, withLeft }
    // A batch is sent as soon as the bucket has one token. The bucket then goes below 0, by the missing
    // tokens of the batch.
    this.#bucket = new TokenBucket({ perSecond: given.rate, burst: 1 }, performance.now())
    this.#mostAtOnce = Math.min(mostAtOnce, Math.ceil(given.rate / batchesPerSecond))
    this.#start = given.start ?? { unit: 0, end: 0, bucket: 0, offset: -1, sent: 0, marksUpTo: -1 }
    this.#position = this.#start
  }

  /**
   * Runs the backfill. `sent` is the number of Identifies of all its runs. `left` is the number of Identifies
   * of the earlier runs.
   */
  async go(): Promise<{ sent: number; left: number; mark: MarkEnd }> {
    const { scope, start } = this.#given
    if (start === undefined && this.#isWhole) {
      this.#position = { ...this.#position, marksUpTo: await this.#begin() }
      await this.note()
    }
    for (let { unit } = this.#start; unit < scope.partitions; unit++) {
      await this.#backfillUnit(unit)
      const { sent, marksUpTo } = this.#position
      this.#position = { unit: unit + 1, end: 0, bucket: 0, offset: -1, sent, marksUpTo }
      await this.note()
    }
    return { sent: this.#position.sent, left: this.#start.sent, mark: await this.#endMark() }
  }

  /** True if the backfill covers everything that the destination can have missed. False in a dry run. */
  get #isWhole(): boolean {
    const { audienceId, property, withLeft, isDryRun } = this.#given.options
    return audienceId === undefined && property === undefined && withLeft && !isDryRun
  }

  #begin(): Promise<number> {
    const { reader, topics, options } = this.#given
    const { spaceId, destinationId } = options
    const where = { topic: topics.backfills, partition: 0, stallTimeoutMs: readStallMs }
    return beginToFill({
      tellBegun: () => this.#tell({ kind: 'begun', destinationId, spaceId }),
      needsBackfill: () => this.#isBehind(),
      end: async () => (await reader.range(where)).end,
    })
  }

  async #endMark(): Promise<MarkEnd> {
    const { spaceId, destinationId, isDryRun } = this.#given.options
    if (isDryRun) return 'none'
    const wasBehind = await this.#isBehind()
    const { marksUpTo } = this.#position
    if (marksUpTo < 0) return wasBehind ? 'stays' : 'none'
    await this.#tell({ kind: 'filled', destinationId, spaceId, upTo: marksUpTo })
    if (!wasBehind) return 'none'
    return (await this.#isBehind()) ? 'stays' : 'down'
  }

  /**
   * Returns true if the destination needs a backfill. Throws if the installation was grown while this command
   * was suspended. In that case, nobody reads the records that the command has written to the former topics
   * since then.
   */
  async #isBehind(): Promise<boolean> {
    const { config, reader, topics, options } = this.#given
    const marks = new Marks(this.#given.scope.partitions)
    const where = { topic: topics.backfills, partition: 0, from: 0, stallTimeoutMs: readStallMs }
    for await (const records of refusingOtherLayout(reader.read(where), config.topics, refuseGrown)) {
      for (const { offset, key, value } of records) {
        const mark = decodeMark(key, value)
        if (mark !== undefined) marks.take(mark, offset)
      }
    }
    return needsBackfill(marks.of(options.destinationId, options.spaceId))
  }

  async #tell(mark: Mark): Promise<void> {
    const record = { topic: this.#given.topics.backfills, partition: 0, ...encodeMark(mark), headers: {} }
    await (await this.#open()).write([record], () => this.advice())
  }

  async #open(): Promise<Writer> {
    const { config, log, progress } = this.#given
    this.#writer ??= await openWriter(config, log, 'audience backfill', (line) => progress.note(line))
    return this.#writer
  }

  async stop(): Promise<void> {
    await this.#writer?.stop()
  }

  async #backfillUnit(unit: number): Promise<void> {
    const { reader, topics } = this.#given
    const start = this.#start
    const range = await reader.range({
      topic: topics.memberships,
      partition: unit,
      stallTimeoutMs: readStallMs,
    })
    // The run continues to the present end, even if an earlier run began with a lower end. A value may have
    // been written again since then, and compaction may have removed its earlier record.
    const { end } = range
    const isBegun = unit === start.unit && start.end > 0
    // The ids of the topics don't always show this: brokers may report none, and a log may lose its end.
    if (isBegun && start.end > end)
      throw new StartError(`${this.#given.options.stateFile ?? ''} ${faults.other_log}`)
    if (end === 0) return
    const states = await readingInput('the spool', async () => new CurrentStates(this.#filter))
    try {
      await this.#read(unit, end, states)
      for (let bucket = isBegun ? start.bucket : 0; bucket < CurrentStates.buckets; bucket++) {
        const from = isBegun && bucket === start.bucket ? start.offset : -1
        const due = states.of(bucket).filter(({ offset }) => offset > from)
        for (let at = 0; at < due.length; at += this.#mostAtOnce) {
          const batch = due.slice(at, at + this.#mostAtOnce)
          const { destinationId } = this.#given.options
          await this.#send(batch.map((state) => replayOf(state, { unit, destinationId, topics })))
          const offset = batch.at(-1)?.offset ?? from
          const sent = this.#position.sent + batch.length
          this.#position = { unit, end, bucket, offset, sent, marksUpTo: this.#position.marksUpTo }
          await this.#noteAtTimes()
          this.#given.progress.at(unit + bucket / CurrentStates.buckets, () => counted(sent, 'Identify'))
        }
      }
    } finally {
      states.close()
    }
  }

  async #read(unit: number, end: number, states: CurrentStates): Promise<void> {
    const { reader, topics, progress } = this.#given
    const { sent } = this.#position
    const where = { topic: topics.memberships, partition: unit, from: 0, stallTimeoutMs: readStallMs }
    for await (const records of reader.read(where)) {
      await readingInput('the spool', async () => {
        for (const record of records) if (record.offset < end) states.add(record)
      })
      const read = (records.at(-1)?.offset ?? 0) + 1
      progress.at(
        unit,
        () =>
          `${counted(sent, 'Identify')}; reading partition ${unit}, offset ${grouped(read)} of ${grouped(end)}`,
      )
      if (read >= end) return
    }
  }

  async #send(records: readonly ReplayRecord[]): Promise<void> {
    if (this.#given.options.isDryRun) return
    for (;;) {
      const waitMs = this.#bucket.take(performance.now(), records.length)
      if (waitMs === 0) break
      await delay(waitMs)
    }
    await (await this.#open()).write(records, () => this.advice())
  }

  /** Returns the text to show after an error. It says how much was written, and how to continue. */
  advice(): string {
    const { stateFile, isDryRun } = this.#given.options
    if (isDryRun) return 'Nothing was sent.'
    const sent = `${counted(this.#position.sent, 'Identify')} were written.`
    return stateFile === undefined
      ? `${sent} Run the command again: all are sent anew, which does no harm. With --state it goes on instead.`
      : `${sent} Run the command again: it goes on from there.`
  }

  async #noteAtTimes(): Promise<void> {
    if (performance.now() - this.#notedMs >= noteEveryMs) await this.note()
  }

  /** Writes the position to the state file atomically, so that a killed process leaves a readable file. */
  async note(): Promise<void> {
    const { options, scope } = this.#given
    if (options.stateFile === undefined || options.isDryRun) return
    await rename(await writePart(options.stateFile, encodePosition(scope, this.#position)), options.stateFile)
    this.#notedMs = performance.now()
  }
}

function refuseGrown({ message }: Error): never {
  throw new StartError(`${message} Identifies of this backfill may be lost: then run a new one.`)
}

function rateOf(given: string | undefined): number {
  if (given === undefined) return defaultRate
  const rate = Number(given)
  if (Number.isInteger(rate) && rate >= 1 && rate <= mostRate) return rate
  throw new WrongUseError(
    `--rate has to be a whole number from 1 to ${grouped(mostRate)}: Identifies a second.`,
  )
}

/** Throws when all messages of the backfill would become dead letters. */
function refuseUselessTarget(catalog: Catalog, { spaceId, destinationId }: BackfillOptions): void {
  const space = catalog.sources.get(spaceId)
  if (space?.kind !== 'audiences') {
    throw new StartError(
      `The catalog has no source ${JSON.stringify(spaceId)} of kind audiences: see --space.`,
    )
  }
  const destination = catalog.destinations.get(destinationId)
  if (destination === undefined) {
    throw new StartError(
      `The catalog has no destination ${JSON.stringify(destinationId)}: see --destination.`,
    )
  }
  if (!destination.sources.includes(spaceId)) {
    throw new StartError(
      `The destination ${JSON.stringify(destinationId)} is not connected to ${JSON.stringify(spaceId)}: add it to its sources in the catalog first.`,
    )
  }
  if (destination.state === 'off') {
    throw new StartError(
      `The destination ${JSON.stringify(destinationId)} is off: switch it on or pause it first.`,
    )
  }
}

async function partitionsOf(
  config: Config,
  kafka: Awaited<ReturnType<typeof openKafka>>,
  topics: TopicNames,
): Promise<number> {
  for (const topic of [topics.memberships, topics.backfills, topics.replays]) {
    const partitions = await askKafka(config, countPartitions(kafka, topic))
    if (partitions === undefined) {
      throw new StartError(`${topic} does not exist: \`sluice topics apply\` creates it.`)
    }
    if (topic === topics.replays) return partitions
  }
  throw new Error('no topic was looked at')
}
