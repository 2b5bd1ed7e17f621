import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { FirstSyncs } from '../backfill/first-syncs.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { type CatalogFile, openCatalogFile } from '../catalog/file.ts'
import { catalogVariables } from '../config/read.ts'
import type { Config } from '../config/schema.ts'
import {
  type GroupConsumer,
  type InboundRecord,
  type RecordContent,
  startConsumer,
} from '../kafka/consumer.ts'
import { startProducer } from '../kafka/producer.ts'
import { maxCarriedBytes } from '../kafka/topic-list.ts'
import { existingRetryTiers, groupSubscriptions, shortTopicName } from '../kafka/topics.ts'
import { within } from '../kafka/within.ts'
import { bothObservers } from '../pipeline/both-observers.ts'
import { createPipeline } from '../pipeline/pipeline.ts'
import type { Pipeline } from '../pipeline/pipeline-ports.ts'
import { Repeats } from '../repeats/repeats.ts'
import { formatWait, parseWait } from '../retry/duration.ts'
import { type Ladder, tiersOf } from '../retry/ladder.ts'
import { showBehind } from '../telemetry/behind.ts'
import { showByTopic } from '../telemetry/show-by-topic.ts'
import { showFirstSyncs } from '../telemetry/first-sync-observer.ts'
import { buildInfo } from '../telemetry/build-info.ts'
import type { CommonMetrics } from '../telemetry/common-metrics.ts'
import { createMetrics, type Metrics } from '../telemetry/metrics.ts'
import { createObserver } from '../telemetry/worker-observer.ts'
import { showOldestUnsettled } from '../telemetry/oldest-unsettled.ts'
import { showRetentionUsed } from '../telemetry/retention-used.ts'
import { showCatalog } from '../telemetry/show-catalog.ts'
import { showOpenHooks } from '../telemetry/show-hooks.ts'
import type { Tracing } from '../tracing/start.ts'
import { askKafka, openKafka } from './ask-kafka.ts'
import { openAttemptLog } from './attempt-log.ts'
import { openAudiences } from './audiences.ts'
import { openBackfillMarks } from './backfill-marks.ts'
import { showCertificateExpiry } from './certificate-expiry.ts'
import { openFirstSyncs } from './open-first-syncs.ts'
import { openGroupLag } from './lag-gauges.ts'
import { refuseOtherLayout } from './growth-journal.ts'
import { tuneGarbageCollector } from './garbage-collector.ts'
import { bulkheadOf } from './bulkhead-limits.ts'
import { continueFromPlainGroup } from './plain-group.ts'
import { openNotices } from './notices.ts'
import { createOutbound } from './outbound.ts'
import type { Parts } from './parts.ts'
import { workerObstacles } from './readiness.ts'
import { openReplays } from './replays.ts'
import { openRetentions } from './retentions.ts'
import { openIntake } from './schema-registry.ts'
import { Stalls } from './stalls.ts'
import { StandingUnits } from './standing-units.ts'
import { StartError } from './start-error.ts'
import { ladderOf, pipelineSettings, type ProcessOf, staticMember, topicNames } from './settings.ts'
import { openOwnTelemetry } from './telemetry.ts'
import { openTracing } from './tracing.ts'
import { type LaidOut, refuseWrongTopics } from './topic-layout.ts'

type Registry = Metrics['registry']

export type WorkerOptions = {
  config: Config
  log: Logger
  /**
   * Takes what is started. It stops within the shutdown timeout: what is in flight is finished, and
   * committed, and the group left.
   */
  parts: Parts
  /** The worker can't go on; the process should end with an error. */
  onFatal: (error: Error) => void
  /** Which of several processes this is. */
  processOf?: ProcessOf
  /** What runs this member. */
  role?: 'worker' | 'up'
}

/** A member of the consumer group, and all that delivers what it reads. */
export type Member = {
  metrics: Registry
  /** Of these, those that a gateway beside it has as well. */
  common: CommonMetrics & { registry: Registry }
  /** The catalog in force. */
  catalog(): Catalog
  /** The retry topics that it reads. */
  tiers: readonly string[]
  /** Which a gateway beside it shares; absent: nothing is traced. */
  tracing: Tracing | undefined
  /** How the topics are, which a gateway beside it writes to. */
  laidOut: LaidOut
  /** Brings the gauges of `metrics` up to date. */
  collect(): void
  /** What keeps it from doing its work, in words; nothing when it is ready. */
  notReady(): readonly string[]
}

/** A member of the group in this process, with its metrics and probes. */
export async function startWorker(options: WorkerOptions): Promise<void> {
  const telemetry = await openOwnTelemetry(options)
  const member = await startMember(options)
  telemetry.tell({
    metrics() {
      member.collect()
      return member.metrics.metrics()
    },
    notReady: () => member.notReady(),
  })
  options.log.info({ port: telemetry.port, tiers: member.tiers }, 'worker started')
}

/** Joins everything that delivers. */
export async function startMember({
  config,
  log,
  parts,
  onFatal,
  processOf,
  role = 'worker',
}: WorkerOptions): Promise<Member> {
  parts.add(tuneGarbageCollector())
  const metrics = createMetrics({ perDestination: config.metrics.perDestination })
  const { version, commit } = buildInfo()
  metrics.buildInfo.set({ version, commit, role }, 1)
  const tracing = await openTracing({ config, log, parts, metrics, role })
  const traces = tracing?.worker
  let firstSyncs: FirstSyncs | undefined
  const catalog = parts.add(await openCatalog(config, metrics, log, () => firstSyncs?.catalogChanged()))
  const kafka = await openKafka(config, log, 'worker')
  const formerPartitions = await refuseOtherLayout(kafka, config)
  const laidOut = await refuseWrongTopics(kafka, config, log)

  const topics = topicNames(config)
  const shared = { config, metrics, log, kafka, catalog: () => catalog.current() }
  const ladder = ladderOf(config)
  const tiers = await askKafka(config, tiersToConsume(kafka, ladder, topics.retryPrefix, log))
  let pipeline: Pipeline | undefined
  let consumer: GroupConsumer | undefined
  const stalls = new Stalls(log, (isStalled) => pipeline?.setStalled(isStalled))
  const standing = new StandingUnits({ log, topics, tiers }, () => ({ pipeline, consumer }))

  const ending = new Ending(config.shutdown.timeoutMs)
  const producer = await askKafka(
    config,
    startProducer({
      kafka,
      maxRecordBytes: maxCarriedBytes(config.message.maxBytes),
      ...laidOut,
      onFailed: () => metrics.produceFailures.inc(),
      onFailing: standing.changed,
      onStalled: (isStalled, reason) => stalls.setUnwritable(isStalled, reason),
    }),
  )
  parts.defer(() => ending.within(producer.stop()))
  const outbound = createOutbound({
    ...shared,
    onUnreachable: (reason) => stalls.setUnreachable(reason),
  })
  parts.defer(() => outbound.close())
  const observer = createObserver({
    metrics,
    log,
    logAttempts: config.log.attempts,
    timeoutMs: config.delivery.timeoutMs,
    retryLimitMs: config.retry.limitMs,
  })
  parts.defer(() => observer.flush())
  const attemptLog = openAttemptLog({ config, kafka, metrics, log })
  if (attemptLog !== undefined) parts.defer(() => ending.within(attemptLog.stop()))
  const { windowMs, messages } = config.repeats
  const repeats = windowMs === 0 ? undefined : new Repeats({ windowMs, messages })
  const { units: audiences, reader } = await openAudiences({
    ...shared,
    producer,
    pipeline: () => running,
    consumer: () => consumer,
    onFatal,
    formerPartitions,
  })
  const { partitions } = config.topics
  const backfillMarks = parts.add(
    openBackfillMarks({ kafka, topic: topics.backfills, partitions, producer, log }),
  )
  const firsts = openFirstSyncs({ ...shared, marks: backfillMarks, audiences, producer })
  firstSyncs = firsts
  async function stopAudiences(): Promise<void> {
    await reader.stop()
    await firsts.stop()
    await audiences.stop()
  }
  parts.defer(() => ending.within(stopAudiences()))
  const replays = await openReplays({ ...shared, producer, consumer: () => consumer })
  parts.defer(() => ending.within(replays.stop()))
  const notices = openNotices({
    ...shared,
    pipeline: () => pipeline,
    consumer: () => consumer,
    marks: backfillMarks,
  })
  parts.defer(() => ending.within(notices.stop()))
  const bulkhead = bulkheadOf(config, log)
  const running = createPipeline({
    catalog: () => catalog.current(),
    sender: outbound.sender,
    outlet: producer,
    observer: [attemptLog?.observer, traces?.observer, notices.observer].reduce(bothObservers, observer),
    tracing: traces,
    ownSource: config.notices.source,
    ...(repeats !== undefined && { repeats }),
    ...pipelineSettings(config),
    bulkhead,
    onPressure: (isFull) => consumer?.setFull(isFull),
    onCongested: (isCongested) => consumer?.setCongested(isCongested),
    mayBegin: () => consumer?.checkInTouch() ?? true,
    judge: (waiting) => audiences.judge(waiting),
    needsJudging: (_sourceId, unit, hasProperty) => hasProperty || audiences.hasDeletions(unit),
    mayBeDeleted: ({ userId, spaceId }, unit) => audiences.mayBeDeleted(unit, userId, spaceId),
    onBehind: (destinationId, spaceId) => backfillMarks.miss(destinationId, spaceId),
    now: Date.now,
  })
  parts.add(running)
  pipeline = running
  const subscriptions = groupSubscriptions(topics, tiers)
  const shortNameOf = (topic: string): string => shortTopicName(topic, config.kafka.topicPrefix)
  const recordCounters = new Map(
    subscriptions.map(({ topic }) => [topic, metrics.records.series({ topic: shortNameOf(topic) })]),
  )
  // An alert on what has not happened yet needs a series to look at.
  for (const { topic } of subscriptions) {
    metrics.recordsLost.inc({ topic: shortNameOf(topic) }, 0)
    metrics.truncations.inc({ topic: shortNameOf(topic) }, 0)
  }
  function take(record: InboundRecord, content: RecordContent): void {
    switch (record.topic) {
      case topics.audienceChanges:
        audiences.acceptChange(record, content)
        return
      case topics.memberships:
        audiences.acceptState(record, content)
        return
      case topics.deletions:
        audiences.acceptDeletion(record, content)
        return
      default:
        running.accept(record, content)
    }
  }
  const intake = parts.add(
    await openIntake<InboundRecord>({
      config,
      metrics,
      log,
      topics: new Set([topics.events, topics.audienceChanges, topics.deletions]),
      next: take,
      refuse: (record, content, { reason, detail }) => running.refuse(record, content, reason, detail),
      setPartitionFull: (topic, id, isFull) => consumer?.setPartitionFull(topic, id, isFull, 'schema'),
    }),
  )
  const subscribed = subscriptions.map(({ topic }) => topic)
  await continueFromPlainGroup(kafka, { config, topics: subscribed, log })
  const retentions = parts.add(openRetentions({ kafka, topics: subscribed, log }))
  showLimits(metrics, config, bulkhead.maxInFlight)
  if (processOf === undefined || processOf.number === 1)
    parts.add(await askKafka(config, openGroupLag({ kafka, config, metrics, log })))
  const member = await askKafka(
    config,
    startConsumer({
      kafka,
      groupId: config.kafka.groupId,
      ...staticMember(config, processOf),
      partitions: config.topics.partitions,
      onTruncation: config.kafka.onTruncation,
      sessionTimeoutMs: config.kafka.sessionTimeoutMs,
      commitIntervalMs: config.kafka.commitIntervalMs,
      topics: subscriptions,
      onRecord(record, content) {
        recordCounters.get(record.topic)?.inc()
        if (traces !== undefined) traces.received(record, content.headers)
        intake.accept(record, content)
      },
      handoverMs: config.delivery.timeoutMs + handoverSlackMs,
      onAssigned(units) {
        repeats?.keepOnly(units)
        running.setShare(units.length / config.topics.partitions)
        intake.letGoAbandoned()
        audiences.letGoAbandoned()
        running.letGoAbandoned()
        standing.assigned()
      },
      async prepare(unit) {
        await audiences.prepare(unit)
        await firsts.acquire(unit)
        replays.acquire(unit)
        notices.acquire(unit)
      },
      async released(unit) {
        notices.release(unit)
        await Promise.all([replays.release(unit), firsts.release(unit)])
        await audiences.release(unit)
      },
      onLost: (topic, count) => metrics.recordsLost.inc({ topic: shortNameOf(topic) }, count),
      onTruncated: (topic) => metrics.truncations.inc({ topic: shortNameOf(topic) }),
      onRebalanced: () => metrics.rebalances.inc(),
      onSilent: (isSilent) => stalls.setSilent(isSilent),
      onCommitFailed: () => metrics.commitFailures.inc(),
      onFatal,
      log,
    }),
  )
  consumer = member
  parts.defer(async () => {
    if (!(await ending.within(leave(member, log))))
      log.error('Kafka did not answer in time: what was settled since the last commit will be repeated')
  })
  parts.defer(async () => {
    stalls.isStopping = true
    log.info({ held: running.held.records, inFlight: running.inFlight }, 'draining')
    member.quiesce()
    intake.stop()
    if (!(await ending.drained(Promise.all([running.drain(), stopAudiences(), replays.stop()]))))
      log.warn(
        { held: running.held.records },
        'stopping before all deliveries were finished: the rest will be repeated',
      )
  })

  return {
    metrics: metrics.registry,
    common: metrics,
    catalog: () => catalog.current(),
    tracing,
    tiers: tiers.map(({ topic }) => topic),
    laidOut,
    collect() {
      collect(metrics, running, member, stalls.stalledBy !== '')
      const used = { retentions: retentions.current, shortNameOf, nowMs: Date.now() }
      showRetentionUsed(metrics, member.partitions, used)
      showByTopic(metrics.partitionsInTrouble, member.troubled, shortNameOf)
      showByTopic(metrics.failingPartitions, producer.failing, shortNameOf)
      showOldestUnsettled(metrics, member.partitions, shortNameOf)
      showOpenHooks(metrics, running.openHooks())
      showCertificateExpiry(metrics, config)
      metrics.heldRecords.set(running.held.records + intake.held.records)
      metrics.heldBytes.set(running.held.bytes + intake.held.bytes)
      metrics.waitingForSchema.set(intake.held.partitions)
      metrics.restoring.set(member.preparing.length)
      metrics.restoreRemaining.set(
        audiences.progress.reduce((sum, { at, end }) => sum + Math.max(0, end - at), 0),
      )
      showBehind(metrics, backfillMarks.behind, catalog.current())
      showFirstSyncs(metrics, firsts.progress)
      metrics.replays.set(replays.running)
      metrics.repeatsRemembered.set(repeats?.count ?? 0)
      metrics.repeatsReach.set((repeats?.reachMs(Date.now()) ?? 0) / 1_000)
    },
    notReady: () => workerObstacles(member, stalls),
  }
}

/** The time that a member has to stop: its parts share it. */
class Ending {
  readonly #timeoutMs: number
  #untilMs: number | undefined

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  /** The first of it. False where `work` isn't done when no more is left than it takes to leave. */
  async drained(work: Promise<unknown>): Promise<boolean> {
    const deadlineMs = performance.now() + this.#timeoutMs
    const isDone = await within(Math.max(0, this.#timeoutMs - leaveMs), work)
    this.#untilMs = Math.max(deadlineMs, performance.now() + leaveMs)
    return isDone
  }

  /** The rest of it. False where `work` isn't done by the end. */
  within(work: Promise<unknown>): Promise<boolean> {
    this.#untilMs ??= performance.now() + leaveMs
    return within(Math.max(0, this.#untilMs - performance.now()), work)
  }
}

/**
 * What the old owner of a partition needs beyond the deadline of its last requests: to put them on a retry
 * topic, and to commit.
 */
const handoverSlackMs = 3_000
/** What is kept of the shutdown timeout for the last commit and for leaving the group. */
const leaveMs = 1_000
const lastCommitTries = 10

async function leave(member: GroupConsumer, log: Logger): Promise<void> {
  // A rebalance refuses a commit for a moment.
  for (let tries = 1; tries <= lastCommitTries; tries++) {
    try {
      await member.commit()
      break
    } catch (error) {
      log.warn({ err: error, tries }, 'the last commit was refused')
      await delay(leaveMs / lastCommitTries)
    }
  }
  await member.stop()
}

async function openCatalog(
  config: Config,
  metrics: Metrics,
  log: Logger,
  onReplaced: () => void,
): Promise<CatalogFile> {
  const opened = await openCatalogFile({
    path: config.catalog.file,
    variables: catalogVariables(),
    allowAddresses: config.delivery.allowAddresses,
    onChange(catalog) {
      showCatalog(metrics, catalog)
      log.info(
        { version: catalog.version, destinations: catalog.destinations.size },
        'the catalog has changed',
      )
      onReplaced()
    },
    onRefused(faults) {
      metrics.catalogRefused.set(1)
      log.error({ faults }, 'the catalog file has faults: the version before it stays in force')
    },
  })
  if (!opened.ok) throw new StartError(opened.message)
  showCatalog(metrics, opened.file.current())
  return opened.file
}

/** The ladder's tiers, and those that an earlier ladder left: each is consumed until it is empty. */
async function tiersToConsume(
  kafka: Parameters<typeof existingRetryTiers>[0],
  ladder: Ladder,
  retryPrefix: string,
  log: Logger,
): Promise<{ topic: string; waitMs: number }[]> {
  const names = new Set([
    ...tiersOf(ladder).map(formatWait),
    ...(await existingRetryTiers(kafka, retryPrefix)),
  ])
  return [...names].flatMap((name) => {
    const waitMs = parseWait(name)
    if (waitMs !== undefined) return [{ topic: `${retryPrefix}${name}`, waitMs }]
    log.warn({ topic: `${retryPrefix}${name}` }, 'a retry topic has no wait in its name, and is not read')
    return []
  })
}

function showLimits(metrics: Metrics, { delivery }: Config, pacedInFlight: number): void {
  metrics.inFlightLimit.set(delivery.maxInFlight)
  metrics.pacedInFlightLimit.set(pacedInFlight)
  metrics.heldRecordsLimit.set(delivery.bufferRecords)
  metrics.heldBytesLimit.set(delivery.bufferBytes)
}

function collect(metrics: Metrics, pipeline: Pipeline, consumer: GroupConsumer, isStalled: boolean): void {
  metrics.inFlight.set(pipeline.inFlight)
  metrics.queued.set(pipeline.queued)
  metrics.pacedHooks.set(pipeline.paced.hooks)
  metrics.pacedInFlight.set(pipeline.paced.inFlight)
  metrics.pacedQueued.set(pipeline.paced.queued)
  metrics.stalled.set(isStalled ? 1 : 0)
  metrics.commitAge.set(consumer.lastCommitMs === 0 ? 0 : (Date.now() - consumer.lastCommitMs) / 1000)
  metrics.lag.reset()
  const tiers = new Map<string, { parked: number; dueMs: number }>()
  for (const { topic, id, waitMs, lag, headDueMs } of consumer.partitions) {
    metrics.lag.set({ topic, partition: id }, lag)
    if (waitMs === 0) continue
    const tier = tiers.get(formatWait(waitMs)) ?? { parked: 0, dueMs: 0 }
    tier.parked += lag
    if (headDueMs > 0 && (tier.dueMs === 0 || headDueMs < tier.dueMs)) tier.dueMs = headDueMs
    tiers.set(formatWait(waitMs), tier)
  }
  metrics.parkedNow.reset()
  metrics.oldestDue.reset()
  for (const [tier, { parked, dueMs }] of tiers) {
    metrics.parkedNow.set({ tier }, parked)
    // A series that said 0 here would be the oldest of all where several processes are added up.
    if (dueMs > 0) metrics.oldestDue.set({ tier }, dueMs / 1000)
  }
}
