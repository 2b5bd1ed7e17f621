import type { Logger } from 'pino'
import type { Catalog } from '../catalog/catalog.ts'
import { stateCountsOf } from '../catalog/next-catalog.ts'
import type { Config } from '../config/schema.ts'
import { startConsumer } from '../kafka/group/consumer.ts'
import { groupSubscriptions, topicTable } from '../topics/topics.ts'
import { allObservers } from '../pipeline/all-observers.ts'
import { createPipeline } from '../pipeline/pipeline.ts'
import type { Pipeline } from '../pipeline/pipeline-ports.ts'
import type { Refusals } from '../notices/refusals.ts'
import type { Watch } from '../notices/watch.ts'
import { recallObserver } from '../recall/run.ts'
import { departuresTo } from '../health/departures.ts'
import { AudienceReporter } from '../health/audience-reporter.ts'
import { FailingReporter } from '../health/failing-reporter.ts'
import { HookAnswers } from '../health/hook-answers.ts'
import { Reporter } from '../health/reporter.ts'
import { WorstFailing } from '../health/worst-failing.ts'
import type { Repeats } from '../repeats/repeats.ts'
import type { WaitingQueues } from '../waiting/queues.ts'
import { buildInfo } from '../telemetry/build-info.ts'
import type { CommonMetrics } from '../telemetry/common-metrics.ts'
import { showDestinations } from '../telemetry/show-state.ts'
import { createWorkerMetrics, type WorkerMetrics } from '../telemetry/worker-metrics.ts'
import { maxOpenFiles } from '../telemetry/open-files.ts'
import type { Tracing } from '../tracing/start.ts'
import type { WorkerTracing } from '../tracing/worker-tracing.ts'
import { askKafka, openKafka } from './start/ask-kafka.ts'
import { AutoPauses } from './member/auto-pauses.ts'
import { connectionLimits } from './start/connection-limits.ts'
import { tuneGarbageCollector } from './start/garbage-collector.ts'
import { refuseOtherLayout } from './start/growth-journal.ts'
import { openGroupLag } from './start/lag-gauges.ts'
import type { MemberBase } from './member/member-base.ts'
import { GroupPort } from './member/member-ports.ts'
import { showLimits, showMember } from './member/member-gauges.ts'
import { type MemberOutlets, openOutlets } from './member/member-outlets.ts'
import { deferEnd } from './member/member-shutdown.ts'
import { type MemberStates, openStates } from './member/member-states.ts'
import { type Notices, openNotices, openRefusals, openWatch } from './member/open-notices.ts'
import { openCatalog, tellWaiting } from './catalog/open-catalog.ts'
import type { RoleCatalog } from './catalog/role-catalog.ts'
import { openRepeats } from './member/open-repeats.ts'
import { openRebuildRepeats, type RebuildRepeats } from './member/rebuild-repeats.ts'
import { openNoticesFeed } from './member/notices-feed.ts'
import type { Parts } from './start/parts.ts'
import { continueFromFormerDefault } from './member/former-default-group.ts'
import { showReady, workerObstacles } from './start/readiness.ts'
import { type OpenLending, openLending } from './member/open-lending.ts'
import { openRecordIntake, type RecordIntake } from './member/record-intake.ts'
import { openHealth } from './member/open-health.ts'
import { openRecalls } from './member/open-recalls.ts'
import { createPartitionReader } from '../kafka/read/partition-reader.ts'
import { countingOutlet, LadderCounts } from '../recall/ladder-counts.ts'
import { ownerName } from './operations/replay-jobs.ts'
import { openReplays, type Replays } from './member/open-replays.ts'
import { holdUntilKnown, openWaiting } from './member/open-waiting.ts'
import { openRetentions, type Retentions } from './member/retentions.ts'
import { type RetryTier, tiersToConsume } from './member/retry-tiers.ts'
import {
  ladderOf,
  pipelineSettings,
  type ProcessOf,
  staticMember,
  topicLayout,
  topicNames,
} from './start/settings.ts'
import { Stalls } from './start/stalls.ts'
import { FailingUnits } from './member/failing-units.ts'
import { openOwnTelemetry } from './start/telemetry.ts'
import { type LaidOut, refuseWrongTopics } from './start/topic-layout.ts'
import { openTracing } from './start/tracing.ts'
import { unitPorts } from './member/unit-parts.ts'
import type { ConsumerOptions } from '../kafka/group/consumer.ts'
import { ShutdownTime } from './member/shutdown-time.ts'

type Registry = WorkerMetrics['registry']

export type WorkerOptions = {
  config: Config
  log: Logger
  /**
   * The list to which the started parts are added. When these parts stop, they finish and commit the
   * deliveries in flight, and leave the group, within the shutdown timeout.
   */
  parts: Parts
  /** Called when the worker can't continue. The process should end with an error. */
  onFatal: (error: Error) => void
  /** The number of this process among the worker's processes. Absent if the worker has only one process. */
  processOf?: ProcessOf
  /** The role that runs this member. */
  role?: 'worker' | 'up'
}

/** A member of the consumer group, with all parts that deliver the records that the member reads. */
export type Member = {
  metrics: Registry
  /** The metrics. A gateway in the same process uses them too. */
  common: CommonMetrics & { registry: Registry }
  catalog(): Catalog
  catalogFile: Pick<RoleCatalog, 'topic' | 'problem'>
  /** The retry topics that the member reads. */
  tiers: readonly string[]
  /** The tracing. A gateway in the same process uses it too. If `undefined`, nothing is traced. */
  tracing: Tracing | undefined
  /** The limits of the topics. A gateway in the same process uses them too. */
  laidOut: LaidOut
  /** Brings the gauges of `metrics` up to date. */
  collect(): void
  /**
   * Returns the reasons why the member can't do its work, in words. The list is empty when the member is
   * ready.
   */
  notReady(): readonly string[]
}

/** Starts a member of the group in this process, with its metrics and probes. */
export async function startWorker(options: WorkerOptions): Promise<void> {
  const telemetry = await openOwnTelemetry(options)
  const member = await startMember(options)
  telemetry.tell({
    metrics() {
      member.collect()
      showReady(member.common, 'worker', member.notReady())
      return member.metrics.metrics()
    },
    notReady: () => member.notReady(),
  })
  options.log.info({ port: telemetry.port, tiers: member.tiers }, 'worker started')
}

/** The values and parts that a member opens first. They are stopped last. */
type OpenedBase = MemberBase & {
  readonly tracing: Tracing | undefined
  readonly laidOut: LaidOut
  readonly formerPartitions: number | undefined
  readonly tiers: readonly RetryTier[]
  readonly file: RoleCatalog
}

/** The parts that a member adds to its base. They read records, and send and observe deliveries. */
type Joined = MemberOutlets &
  MemberStates & {
    readonly retentions: Retentions
    readonly waiting: WaitingQueues
    readonly lending: OpenLending
    readonly replays: Replays
    readonly watch: Watch
    /** Which hooks refuse everything. If `undefined`, nobody is told. */
    readonly refusals: Refusals | undefined
    /** Tells other processes what waits of each destination. */
    readonly reporter: Reporter
    /** Tells them which URLs fail, and what these answer. */
    readonly failing: FailingReporter
    /** Tells them how many values audiences have, and who gets them. */
    readonly audienceReporter: AudienceReporter
    readonly answers: HookAnswers
    readonly worst: WorstFailing
    /** How many messages of each destination wait on the retry topics. */
    readonly ladder: LadderCounts
    /** The detection of repeated messages. If `undefined`, repeats are delivered. */
    readonly repeats: Repeats | undefined
    /** Rebuilds the memory of repeats. If `undefined`, repeats of earlier owners' messages are delivered. */
    readonly rebuilds: RebuildRepeats | undefined
    /** The tracing of the worker. If `undefined`, nothing is traced. */
    readonly traces: WorkerTracing | undefined
  }

/** Connects to Kafka, and starts all parts of a member. */
export async function startMember(options: WorkerOptions): Promise<Member> {
  const repeats = openRepeats(options.config.repeats, options.processOf?.count ?? 1)
  const base = await openBase(options)
  const { config, log, parts, metrics, kafka, group, stalls, tiers, laidOut, limits } = base
  const joined = await openJoined(base, repeats)
  const pipeline = parts.add(openPipeline(base, joined))
  joined.deliveries.connect(pipeline)
  const notices = openNotices({ ...base, ...joined, pipeline })
  parts.defer(() => base.shutdownTime.within(notices.stop()))
  const subscriptions = groupSubscriptions(topicNames(config), tiers)
  tellPipeline({ ...base, ...joined }, pipeline, subscriptions)
  const intake = parts.add(await openRecordIntake({ ...base, ...joined, pipeline, subscriptions }))
  const recalls = openRecalls({ ...base, ...joined, pipeline, intake })
  parts.defer(() => base.shutdownTime.within(recalls.stop()))
  const health = openHealth({ ...base, ...joined, pipeline })
  parts.defer(() => base.shutdownTime.within(health.stop()))
  parts.defer(() => base.shutdownTime.within(base.feed.stop()))
  const topics = subscriptions.map(({ topic }) => topic)
  await Promise.all([base.feed.start(), continueFromFormerDefault(kafka, { config, topics, log })])
  showLimits(metrics, config, limits)
  if (options.processOf === undefined || options.processOf.number === 1)
    parts.add(openGroupLag({ kafka, config, metrics, log }))
  const consumer = await askKafka(
    config,
    startConsumer({
      ...consumerSettings(options),
      ...consumerPorts(base, { ...joined, notices, pipeline, intake }),
      topics: subscriptions,
    }),
  )
  group.connect(consumer)
  const { stopStates, replays, waiting } = joined
  const stopWriters = () => Promise.all([stopStates(), replays.stop()])
  base.file.inForce()
  deferEnd({ ...base, consumer, pipeline, intake, waiting, stopWriters })

  const shown = { ...base, ...joined, pipeline, consumer, intake }
  return {
    metrics: metrics.registry,
    common: metrics,
    catalog: base.catalog,
    catalogFile: base.file,
    tracing: base.tracing,
    tiers: tiers.map(({ topic }) => topic),
    laidOut,
    collect: () => showMember(metrics, shown),
    notReady: () => workerObstacles(consumer, stalls, base.failingUnits),
  }
}

async function openBase(options: WorkerOptions): Promise<OpenedBase> {
  const { config, log, parts, onFatal, role = 'worker' } = options
  tuneGarbageCollector()
  const metrics = createWorkerMetrics({ perDestination: config.metrics.perDestination })
  const { version, commit } = buildInfo()
  metrics.buildInfo.set({ version, commit, role }, 1)
  const tracing = await openTracing({ config, log, parts, metrics, role })
  const file = parts.add(
    await openCatalog({
      config,
      metrics,
      log,
      role: 'worker',
      allowAddresses: config.delivery.allowAddresses,
      counts: 'destinations',
    }),
  )
  // The catalog may change from now on, so those who listen are added before the next `await`.
  const stalls = new Stalls(log)
  const pauses = new AutoPauses({ config, log, file, isStalled: () => stalls.isStalled })
  pauses.onChange(() => {
    showDestinations(metrics, stateCountsOf(pauses.catalog))
    metrics.goneHooks.set(pauses.goneCount)
  })
  const kafka = await openKafka(config, log, 'worker')
  const feed = openNoticesFeed({ config, kafka, log })
  feed.onRecord((record) => pauses.take(record))
  feed.onRound(() => pauses.taken())
  feed.onReset(() => pauses.reset())
  const formerPartitions = await refuseOtherLayout(kafka, config)
  const laidOut = await refuseWrongTopics(kafka, config, log, topicsToCheck(config, file))
  const { retryPrefix } = topicNames(config)
  const tiers = await askKafka(config, tiersToConsume(kafka, ladderOf(config), retryPrefix, log))
  const failingUnits = new FailingUnits({ log, topics: topicNames(config) })
  const shutdownTime = new ShutdownTime(config.shutdown.timeoutMs)
  const catalog = (): Catalog => pauses.catalog
  const shared = {
    config,
    log,
    parts,
    onFatal,
    metrics,
    catalog,
    kafka,
    stalls,
    failingUnits,
    shutdownTime,
    group: new GroupPort(),
    pauses,
    feed,
    limits: connectionLimits(config, { openFiles: maxOpenFiles(), hasGateway: role === 'up' }, log),
  }
  return { ...shared, tracing, laidOut, formerPartitions, tiers, file }
}

/**
 * If the copy of the catalog takes the place of its topic, the topic may even be missing. `undefined`: all
 * topics.
 */
function topicsToCheck(config: Config, { topic: followed }: RoleCatalog): readonly string[] | undefined {
  if (followed?.trouble() === undefined) return undefined
  const { catalog } = topicNames(config)
  return topicTable(topicLayout(config)).flatMap(({ topic }) => (topic === catalog ? [] : [topic]))
}

async function openJoined(base: OpenedBase, repeats: Repeats | undefined): Promise<Joined> {
  const { config, log, kafka, parts, shutdownTime, laidOut, formerPartitions, tiers } = base
  const outlets = await openOutlets(base, laidOut)
  const { producer } = outlets
  let queues: WaitingQueues | undefined
  const backlogOf = (destinationId: string): number => queues?.replayedOf(destinationId) ?? 0
  const states = await openStates({ ...base, producer, formerPartitions, backlogOf })
  const topics = groupSubscriptions(topicNames(config), tiers).map(({ topic }) => topic)
  const retentions = parts.add(openRetentions({ kafka, topics, log }))
  const retention = () => retentions.current.get(topicNames(config).waiting)
  const waiting = parts.add(openWaiting({ ...base, ...states, producer, retention }))
  queues = waiting
  const lending = openLending({ ...base, ...outlets, ...states })
  parts.defer(() => shutdownTime.within(lending.stop()))
  const replays = await openReplays({ ...base, producer })
  parts.defer(() => shutdownTime.within(replays.stop()))
  const writer = ownerName()
  const told = {
    watch: openWatch({ ...base, outbound: outlets.outbound }),
    refusals: openRefusals(config),
    reporter: new Reporter(writer),
    failing: new FailingReporter(writer),
    audienceReporter: new AudienceReporter(writer),
    answers: new HookAnswers(Date.now),
    worst: new WorstFailing(),
    traces: base.tracing?.worker,
  }
  const ladder = openLadderCounts(base)
  const rebuilds = await openRebuilds(base, repeats)
  return { ...outlets, ...states, ...told, retentions, waiting, lending, replays, ladder, repeats, rebuilds }
}

/** What earlier owners have written is read in pieces of this size. */
const ladderFetchBytes = 256 * 1024

function openLadderCounts({ kafka, group, tiers, log, parts, shutdownTime }: OpenedBase): LadderCounts {
  const ladder = new LadderCounts({
    topics: tiers.map(({ topic }) => topic),
    owned: () => group.partitions,
    early: (topic, id) => group.early(topic, id),
    reader: createPartitionReader(kafka, { fetchBytes: ladderFetchBytes }),
    log,
  })
  ladder.start()
  parts.defer(() => shutdownTime.within(ladder.stop()))
  return ladder
}

async function openRebuilds(
  base: OpenedBase,
  repeats: Repeats | undefined,
): Promise<RebuildRepeats | undefined> {
  if (repeats === undefined || base.config.repeats.rebuildTimeMs === 0) return undefined
  return base.parts.add(await openRebuildRepeats({ ...base, repeats }))
}

function openPipeline(base: MemberBase, joined: Joined): Pipeline {
  const { config, catalog, group, limits } = base
  const { producer, outbound, deliveryLog, audiences, marks, repeats, traces, waiting } = joined
  const observers = [
    deliveryLog?.observer,
    traces?.observer,
    joined.watch.observer,
    joined.refusals?.observer,
    recallObserver,
    departuresTo(joined.reporter),
    joined.answers.observer,
  ]
  return createPipeline({
    catalog,
    sender: outbound.sender,
    outlet: countingOutlet(producer, joined.ladder),
    queue: waiting,
    rateDifferenceOf: (id) => joined.lending.differenceOf(id),
    observer: allObservers(joined.observer, observers),
    tracing: traces,
    ownSource: config.notices.source,
    ...(repeats !== undefined && { repeats }),
    ...pipelineSettings(config),
    answeredGone: (definition, hookId, outcome) => base.pauses.answeredGone(definition, hookId, outcome),
    maxInFlight: limits.maxInFlight,
    bulkhead: limits.bulkhead,
    onPressure: (isFull) => group.setFull(isFull),
    onCongested: (isCongested) => group.setCongested(isCongested),
    mayBegin: () => group.checkInTouch(),
    judge: (delivery) => audiences.judge(delivery),
    needsJudging: (_sourceId, unit, hasProperty) => hasProperty || audiences.hasDeletions(unit),
    mayBeDeleted: ({ userId, spaceId }, unit) => audiences.mayBeDeleted(unit, userId, spaceId),
    mayBeSuppressed: (event) => audiences.mayBeSuppressed(event),
    deletionsOf: (unit) => audiences.deletionsOf(unit),
    needsBackfill: (destinationId, spaceId) => marks.needsBackfill(destinationId, spaceId),
    now: Date.now,
  })
}

/** Tells the pipeline what stops all deliveries or those of a unit, and for whom deliveries wait in vain. */
function tellPipeline(
  { log, group, stalls, failingUnits, file, waiting }: OpenedBase & { readonly waiting: WaitingQueues },
  pipeline: Pipeline,
  subscriptions: ConsumerOptions['topics'],
): void {
  stalls.onChange((isStalled) => pipeline.setStalled(isStalled))
  failingUnits.onChange((unit, isStopped) => {
    pipeline.setUnitStopped(unit, isStopped)
    waiting.setUnitStopped(unit, isStopped)
    for (const { topic } of subscriptions) group.setPartitionFull(topic, unit, isStopped, 'produce')
  })
  const waitingFor = (id: string): number =>
    pipeline.waitingFor(id) + waiting.countOf(id) + waiting.wantedOf(id)
  file.onChange((now, before) => tellWaiting(log, waitingFor, { now, before }))
}

/**
 * The time that the former owner of a partition needs after the deadline of its last requests, in
 * milliseconds. In this time it writes the deliveries of these requests to a retry topic, and commits.
 */
const handoverSlackMs = 3_000

function consumerSettings({ config, processOf }: WorkerOptions) {
  const { groupId, onTruncation, sessionTimeoutMs, commitIntervalMs } = config.kafka
  return {
    groupId,
    ...staticMember(config, processOf),
    partitions: config.topics.partitions,
    onTruncation,
    sessionTimeoutMs,
    commitIntervalMs,
    handoverMs: config.delivery.timeoutMs + handoverSlackMs,
  }
}

function consumerPorts(
  { config, kafka, metrics, log, group, stalls, failingUnits, onFatal }: MemberBase,
  member: Joined & { readonly notices: Notices; readonly pipeline: Pipeline; readonly intake: RecordIntake },
) {
  const { audiences, repeats, rebuilds, pipeline, intake, waiting, lending } = member
  const { events } = topicNames(config)
  return {
    kafka,
    onRecord: intake.accept,
    onAssigned(units, generation) {
      repeats?.keepOnly(units)
      rebuilds?.assigned(units.length)
      holdUntilKnown(waiting, group, { events, units })
      const share = units.length / config.topics.partitions
      pipeline.setShare(share)
      lending.assigned(share, generation)
      intake.letGoAbandoned()
      audiences.letGoAbandoned()
      pipeline.letGoAbandoned()
      failingUnits.assigned(units)
    },
    ...unitPorts(member),
    ...(rebuilds !== undefined && { onInherited: (passedOn) => rebuilds.rebuild(passedOn) }),
    onLost: (topic, count) => intake.lost(topic, count),
    onTruncated: (topic) => intake.truncated(topic),
    onRebalanced: () => metrics.rebalances.inc(),
    onSilent: (isSilent) => stalls.setSilent(isSilent),
    onCommitFailed: () => metrics.commitFailures.inc(),
    onFatal,
    log,
  } satisfies Partial<ConsumerOptions>
}
