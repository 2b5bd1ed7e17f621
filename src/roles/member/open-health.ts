import { setTimeout as delay } from 'node:timers/promises'
import { restAfter } from '../../async/rest.ts'
import type { Logger } from 'pino'
import { untilAborted } from '../../async/until-aborted.ts'
import { within } from '../../async/within.ts'
import type { Config } from '../../config/schema.ts'
import { encodeHealth, type HealthRecord } from '../../health/health-record.ts'
import type { AudienceReporter } from '../../health/audience-reporter.ts'
import type { ValueCounter } from '../../audience/store/value-counter.ts'
import type { FirstSyncs } from '../../backfill/first-syncs.ts'
import { audienceWord } from './audience-word.ts'
import type { BackfillMarks } from './backfill-marks.ts'
import type { FailingReporter } from '../../health/failing-reporter.ts'
import type { FailingFacts, HookAnswers } from '../../health/hook-answers.ts'
import type { FailingWord, LimitWord, ProcessWord } from '../../health/health-record.ts'
import type { DestinationFacts, Facts, Reporter } from '../../health/reporter.ts'
import { type RecordProducer, startProducer, whileAnyFails } from '../../kafka/produce/producer.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { GroupConsumer } from '../../kafka/group/consumer.ts'
import type { Pipeline } from '../../pipeline/pipeline-ports.ts'
import { buildInfo } from '../../telemetry/build-info.ts'
import { maxRetryRecordBytes } from '../../topics/topic-list.ts'
import type { LadderCounts } from '../../recall/ladder-counts.ts'
import type { WaitingQueues } from '../../waiting/queues.ts'
import type { RoleCatalog } from '../catalog/role-catalog.ts'
import type { KafkaClient } from '../operations/replay-jobs.ts'
import { topicNames } from '../start/settings.ts'

export type OpenHealthOptions = {
  readonly config: Config
  readonly log: Logger
  readonly kafka: KafkaClient
  readonly catalog: () => Catalog
  readonly file: Pick<RoleCatalog, 'problem' | 'topic'>
  readonly reporter: Reporter
  readonly answers: HookAnswers
  readonly failing: FailingReporter
  readonly audienceReporter: AudienceReporter
  readonly counter: Pick<ValueCounter, 'counts'>
  readonly firstSyncs: Pick<FirstSyncs, 'progress'>
  readonly marks: Pick<BackfillMarks, 'behind'>
  readonly group: Pick<GroupConsumer, 'partitions'>
  readonly ladder: Pick<LadderCounts, 'look' | 'ids' | 'countOf' | 'total' | 'unknown'>
  readonly waiting: Pick<WaitingQueues, 'backlogs' | 'oldestOf' | 'learnTimes' | 'readyUnits'>
  readonly pipeline: Pick<Pipeline, 'lanes' | 'lowered' | 'openHooks' | 'paceOf' | 'waitingFor'>
}

/** The part of a member that tells other processes what it knows of destinations. */
export type OpenHealth = { stop(): Promise<void> }

/** What a process tells of itself beside its units and its lag. */
type ProcessFacts = Pick<
  ProcessWord,
  'version' | 'startedMs' | 'failing' | 'untold' | 'catalogTrouble' | 'catalogCopyMs'
>

/**
 * The time between two reports, in milliseconds. Reports take at most this share of the time, even if
 * messages of a hundred thousand destinations wait.
 */
const pause = { leastMs: 3_000, mostMs: 60_000, share: 0.05 }
const stopWithinMs = 500

/**
 * Opens the part that writes to the topic `health`. It has connections of its own to Kafka, so no delivery
 * waits if this topic can't be written.
 */
export function openHealth(options: OpenHealthOptions): OpenHealth {
  const { config, log, kafka, reporter, failing, audienceReporter, waiting } = options
  const topic = topicNames(config).health
  const build = { version: buildInfo().version, startedMs: Math.round(performance.timeOrigin) }
  const stopping = new AbortController()
  const { signal } = stopping
  let producer: RecordProducer | undefined

  async function write(records: readonly HealthRecord[]): Promise<void> {
    producer ??= await startProducer({
      kafka,
      maxRecordBytes: maxRetryRecordBytes(config.message.maxBytes),
      onFailing: whileAnyFails((isFailing, reason) => {
        if (isFailing)
          log.warn({ reason }, 'Kafka does not accept what waits of each destination; deliveries go on')
        else log.info('Kafka accepts what waits of each destination again')
      }),
    })
    const opened = producer
    const placed = { topic, partition: 0, headers: {} }
    await Promise.all(records.map((record) => opened.produce({ ...encodeHealth(record), ...placed })))
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const startedMs = performance.now()
      const records = reportOf(options, { ...build, ...catalogFacts(options.file) }, Date.now())
      const tookMs = performance.now() - startedMs
      try {
        // What is true of the process comes last: it says that the rest is written.
        await untilAborted(write(records.slice(0, -1)), signal)
        await untilAborted(write(records.slice(-1)), signal)
        await untilAborted(waiting.learnTimes(), signal)
      } catch (error) {
        if (signal.aborted) break
        log.debug({ err: error }, 'what waits of each destination can not be told, trying again')
        reporter.forget()
        failing.forget()
        audienceReporter.forget()
      }
      await delay(restAfter(tookMs, pause), undefined, { signal }).catch(() => undefined)
    }
  }

  const running = run()
  return {
    async stop() {
      stopping.abort(new Error('the worker stops'))
      await running
      await within(
        stopWithinMs,
        write([...reporter.end(), ...failing.end(), ...audienceReporter.end()]).catch(() => undefined),
      )
      await within(stopWithinMs, producer?.stop() ?? Promise.resolve())
    },
  }
}

function catalogFacts(file: OpenHealthOptions['file']): ProcessFacts {
  const problem = file.problem()
  const copy = file.topic?.trouble()?.copy
  return {
    ...(problem !== undefined && { catalogTrouble: problem }),
    ...(copy !== undefined && { catalogCopyMs: copy.writtenMs }),
  }
}

/** Returns the records to write now. The word about the process comes last. */
function reportOf(options: OpenHealthOptions, build: ProcessFacts, nowMs: number): readonly HealthRecord[] {
  const { catalog, reporter, answers, failing, audienceReporter, pipeline } = options
  const lowered = new Set(pipeline.lowered())
  const facts = answers.failing(pipeline.openHooks(), catalog())
  const words = new Map(
    [...facts].map(([id, fact]) => [id, failingWord(fact, limitOf(id, pipeline, lowered))]),
  )
  const { records, ...counts } = failing.report(words, nowMs)
  const ofAudiences = audienceReporter.report(audienceWord(options), nowMs)
  return [
    ...records,
    ...ofAudiences,
    ...reporter.report(factsOf(options, lowered, { ...build, ...counts }), nowMs),
  ]
}

function failingWord({ hooks, nextMs }: FailingFacts, limit: LimitWord | undefined): FailingWord {
  return { hooks, ...(nextMs !== undefined && { nextMs }), ...(limit !== undefined && { limit }) }
}

function limitOf(
  destinationId: string,
  pipeline: Pick<Pipeline, 'paceOf'>,
  lowered: ReadonlySet<string>,
): LimitWord | undefined {
  const pace = pipeline.paceOf(destinationId)
  return (
    pace && {
      inFlight: pace.inFlight,
      ...(pace.perSecond !== undefined && { perSecond: Math.round(pace.perSecond * 1_000) / 1_000 }),
      ...(pace.perRequest > 1 && { perRequest: pace.perRequest }),
      isLowered: lowered.has(destinationId),
    }
  )
}

/** Returns what this process has to tell of itself. What waits in the queues of destinations is no lag. */
function processOf({ config, waiting, group, ladder }: OpenHealthOptions, counts: ProcessFacts): ProcessWord {
  const topic = topicNames(config).waiting
  const read = [...group.partitions].filter((one) => !one.isWaiting && one.topic !== topic)
  const fresh = read.filter(({ waitMs }) => waitMs === 0)
  const oldest = fresh.flatMap(({ oldestUnsettledMs }) => (oldestUnsettledMs > 0 ? [oldestUnsettledMs] : []))
  return {
    units: [...waiting.readyUnits],
    of: config.topics.partitions,
    lag: lagOf(fresh),
    ...(oldest.length > 0 && { oldestMs: Math.min(...oldest) }),
    // Until a commit passes them, the lag also has messages that were called back or given up.
    retrying:
      ladder.unknown === undefined
        ? lagOf(read.filter(({ waitMs }) => waitMs > 0))
        : ladder.total + ladder.unknown,
    uncountedRetries: ladder.unknown ?? null,
    ...counts,
  }
}

function lagOf(partitions: readonly { readonly lag: number }[]): number {
  return partitions.reduce((sum, { lag }) => sum + lag, 0)
}

/** Returns what this process has to tell of destinations of which something waits, or that take less. */
function factsOf(options: OpenHealthOptions, lowered: ReadonlySet<string>, counts: ProcessFacts): Facts {
  const { waiting, pipeline, ladder } = options
  ladder.look()
  const backlogs = waiting.backlogs()
  const lanes = new Map([...pipeline.lanes()].map((lane) => [lane.destinationId, lane]))
  const destinations = new Map<string, DestinationFacts>()
  for (const id of new Set([...backlogs.keys(), ...lanes.keys(), ...lowered])) {
    const { messages, replayed } = backlogs.get(id) ?? { messages: 0, replayed: 0 }
    const limit = limitOf(id, pipeline, lowered)
    const retrying = ladder.countOf(id)
    destinations.set(id, { messages: messages + pipeline.waitingFor(id), replayed, retrying, limit })
  }
  // Of a destination that only fails, the limits are told with how it fails.
  for (const id of ladder.ids())
    if (!destinations.has(id))
      destinations.set(id, {
        messages: pipeline.waitingFor(id),
        replayed: 0,
        retrying: ladder.countOf(id),
        limit: undefined,
      })
  return {
    destinations,
    oldestMs(id) {
      const inLane = lanes.get(id)?.oldestMs
      if ((backlogs.get(id)?.messages ?? 0) === 0) return inLane ?? Date.now()
      const inQueue = waiting.oldestOf(id)
      return inQueue === undefined ? undefined : Math.min(inQueue, inLane ?? inQueue)
    },
    process: processOf(options, counts),
  }
}
