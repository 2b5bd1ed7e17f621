import type { Logger } from 'pino'
import type { Catalog } from '../../catalog/catalog.ts'
import type { Config } from '../../config/schema.ts'
import { untilAborted } from '../../async/until-aborted.ts'
import { createPartitionReader } from '../../kafka/read/partition-reader.ts'
import {
  type ProducerRecord,
  type ProduceResult,
  type RecordProducer,
  startProducer,
  whileAnyFails,
} from '../../kafka/produce/producer.ts'
import { maxRetryRecordBytes } from '../../topics/topic-list.ts'
import { within } from '../../async/within.ts'
import type { Terms } from '../../notices/decider.ts'
import type { AboutDestination } from '../../notices/notice.ts'
import { Notifier, type NotifierOptions, type PausesPort } from '../../notices/notifier.ts'
import { encodeGone } from '../../notices/gone-record.ts'
import { Refusals } from '../../notices/refusals.ts'
import { Watch } from '../../notices/watch.ts'
import type { Pipeline } from '../../pipeline/pipeline-ports.ts'
import type { WorkerMetrics } from '../../telemetry/worker-metrics.ts'
import { createNoticeObserver } from '../../telemetry/notice-observer.ts'
import type { AutoPauses } from './auto-pauses.ts'
import type { BackfillMarks } from './backfill-marks.ts'
import { type KafkaClient, ownerName } from '../operations/replay-jobs.ts'
import type { Outbound } from '../start/outbound.ts'
import { topicNames, lookEveryMs } from '../start/settings.ts'
import type { GroupConsumer } from '../../kafka/group/consumer.ts'

export type NoticesOptions = {
  config: Config
  metrics: WorkerMetrics
  log: Logger
  kafka: KafkaClient
  catalog: () => Catalog
  watch: Watch
  refusals: Refusals | undefined
  pipeline: Pick<Pipeline, 'openHooks'>
  group: Pick<GroupConsumer, 'isMember'>
  marks: Pick<BackfillMarks, 'behind'>
  pauses: Pick<AutoPauses, keyof PausesPort | 'gone' | 'whole'>
  onFatal: (error: Error) => void
}

export type Notices = {
  acquire(unit: number): void
  release(unit: number): void
  stop(): Promise<void>
}

/** The unit whose owner decides which notices are sent. Every installation has this unit. */
const decidingUnit = 0
const stallTimeoutMs = 10_000
const stopWithinMs = 500
const leastStaleMs = 60_000

/**
 * Opens the part that sends notices. It has connections of its own to Kafka, so no delivery waits if notices
 * can't be written.
 */
export function openNotices(options: NoticesOptions): Notices {
  const { config, kafka, catalog, log, watch, pipeline, group } = options
  const topics = topicNames(config)
  const sourceId = config.notices.source
  const everyMs = lookEveryMs(config)
  const reader = createPartitionReader(kafka, { keepsOpen: true })
  const stopping = new AbortController()
  let producer: Promise<RecordProducer> | undefined

  /** Writes a record. Opens the producer on the first call. */
  async function produce(record: ProducerRecord): Promise<ProduceResult> {
    producer ??= openProducer(options)
    const opened = await producer.catch((error: unknown) => {
      producer = undefined
      throw error
    })
    return untilAborted(opened.produce(record), stopping.signal)
  }

  async function write(record: Pick<ProducerRecord, 'key' | 'value'>): Promise<void> {
    const result = await produce({ ...record, topic: topics.notices, partition: 0, headers: {} })
    if (result === 'refused') throw new Error(`${topics.notices} does not accept even a small record`)
  }

  options.pauses.gone.connect((record) => write(encodeGone(record)))
  const notifier = new Notifier({
    reporter: ownerName(),
    terms: termsOf(config, everyMs),
    everyMs,
    watch,
    refusals: options.refusals,
    read: reader.follow({ topic: topics.notices, partition: 0, stallTimeoutMs }, options.onFatal),
    write,
    async send({ key, text }) {
      const headers = { 'source-id': sourceId }
      const record = { topic: topics.events, key: Buffer.from(key), value: Buffer.from(text), headers }
      return (await produce(record)) === 'acknowledged'
    },
    openHooks: () => pipeline.openHooks(),
    isWanted: () => isWanted(catalog(), sourceId),
    isOwner: () => group.isMember,
    situation: () => situationOf(options.pauses.whole, options.marks),
    aboutOf: (id) => aboutOf(catalog(), id),
    pauses: options.pauses,
    pauseTerms: pauseTermsOf(config, everyMs),
    observer: createNoticeObserver({ metrics: options.metrics, log }),
    now: Date.now,
  })

  return {
    acquire: (unit) => void (unit === decidingUnit && notifier.acquire()),
    release: (unit) => void (unit === decidingUnit && notifier.release()),
    async stop() {
      stopping.abort(new Error('the worker stops'))
      const opened = await producer?.catch(() => undefined)
      await within(stopWithinMs, Promise.all([reader.stop(), opened?.stop(), notifier.stop()]))
    },
  }
}

/** Opens the part that watches deliveries for the notices. It is also an observer of the pipeline. */
export function openWatch({
  config,
  outbound,
  metrics,
}: {
  readonly config: Config
  readonly outbound: Pick<Outbound, 'egressOutage'>
  readonly metrics: WorkerMetrics
}): Watch {
  const { source: sourceId, failingAfterMs } = config.notices
  return new Watch({
    sourceId,
    failingAfterMs,
    egressOutage: () => outbound.egressOutage(),
    onWithheld: () => metrics.egressWithheld.inc(),
    monotonicMs: () => performance.now(),
    now: Date.now,
  })
}

/** Opens the part that watches which hooks refuse everything; `undefined` if the settings switch it off. */
export function openRefusals({ notices }: Config): Refusals | undefined {
  const { source: sourceId, failingAfterMs, refusingAfterMs, pauseRefusing } = notices
  if (refusingAfterMs === 0 && !pauseRefusing) return undefined
  // Other processes need time to report that the hook accepts requests.
  const reportAfterMs = refusingAfterMs === 0 ? failingAfterMs : Math.min(failingAfterMs, refusingAfterMs / 2)
  return new Refusals({
    sourceId,
    reportAfterMs,
    monotonicMs: () => performance.now(),
    now: Date.now,
  })
}

function openProducer({ config, kafka, log }: NoticesOptions): Promise<RecordProducer> {
  return startProducer({
    kafka,
    maxRecordBytes: maxRetryRecordBytes(config.message.maxBytes),
    onFailing: whileAnyFails((isFailing, reason) => {
      if (isFailing) log.warn({ reason }, 'Kafka does not accept notices; deliveries go on without them')
      else log.info('Kafka accepts notices again')
    }),
  })
}

function termsOf({ notices, kafka }: Config, everyMs: number): Terms {
  return {
    failingAfterMs: notices.failingAfterMs,
    windowMs: notices.windowMs,
    least: { paced: notices.paced, dead_letters: notices.deadLetters },
    // A process that hangs for less than its session timeout still counts as running.
    staleMs: Math.max(leastStaleMs, kafka.sessionTimeoutMs + 3 * everyMs),
    wellMs: 2 * everyMs,
    secretEndingMs: notices.secretEndingMs,
    refusingAfterMs: notices.refusingAfterMs,
  }
}

function pauseTermsOf(config: Config, everyMs: number): NotifierOptions['pauseTerms'] {
  const { failingAfterMs: steadyMs, pauseRefusing: refusalsFail } = config.notices
  return { staleMs: termsOf(config, everyMs).staleMs, steadyMs, refusalsFail }
}

/**
 * Returns true if notices have a receiver: their source is enabled and of kind `events`, and at least one
 * destination of this source isn't off.
 */
function isWanted({ sources, destinationsBySource }: Catalog, sourceId: string): boolean {
  const source = sources.get(sourceId)
  if (source?.enabled !== true || source.kind !== 'events') return false
  return (destinationsBySource.get(sourceId) ?? []).some(({ state }) => state !== 'off')
}

function situationOf(
  { sources, destinations }: Catalog,
  { behind }: Pick<BackfillMarks, 'behind'>,
): ReturnType<ConstructorParameters<typeof Notifier>[0]['situation']> {
  return {
    isKnown(destinationId, hookId) {
      const destination = destinations.get(destinationId)
      if (destination === undefined || hookId === undefined) return destination !== undefined
      return destination.hooks.some(({ id }) => id === hookId)
    },
    behind: behind.filter(
      ({ destinationId, spaceId }) =>
        sources.get(spaceId)?.kind === 'audiences' &&
        destinations.get(destinationId)?.sources.includes(spaceId) === true,
    ),
    secrets: endsOf(destinations),
  }
}

type Ends = ReturnType<ConstructorParameters<typeof Notifier>[0]['situation']>['secrets']
const knownEnds = new WeakMap<Catalog['destinations'], Ends>()

/** Returns when secrets end. This is asked every few seconds, so a version of the catalog is read once. */
function endsOf(destinations: Catalog['destinations']): Ends {
  const known = knownEnds.get(destinations)
  if (known !== undefined) return known
  const ends = [...destinations.values()].flatMap(({ id, sharedSecretEndsAtMs }) =>
    sharedSecretEndsAtMs === undefined ? [] : [{ destinationId: id, endsAtMs: sharedSecretEndsAtMs }],
  )
  knownEnds.set(destinations, ends)
  return ends
}

/** Returns what notices say about a destination, which may have been removed. */
function aboutOf({ destinations }: Catalog, id: string): AboutDestination {
  const { name = id, labels } = destinations.get(id) ?? {}
  return { name, labels }
}
