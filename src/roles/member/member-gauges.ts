import type { WaitingQueues } from '../../waiting/queues.ts'
import type { AudienceUnits } from '../../audience/unit/units.ts'
import type { FirstSyncs } from '../../backfill/first-syncs.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { HookAnswers } from '../../health/hook-answers.ts'
import type { WorstFailing } from '../../health/worst-failing.ts'
import type { Config } from '../../config/schema.ts'
import type { RecordProducer } from '../../kafka/produce/producer.ts'
import { shortTopicName } from '../../topics/topics.ts'
import type { Refusals } from '../../notices/refusals.ts'
import type { Pipeline } from '../../pipeline/pipeline-ports.ts'
import type { Repeats } from '../../repeats/repeats.ts'
import { formatWait } from '../../retry/duration.ts'
import { showFirstSyncs } from '../../telemetry/first-sync-observer.ts'
import type { WorkerMetrics } from '../../telemetry/worker-metrics.ts'
import type { BackfillMarks } from './backfill-marks.ts'
import { showKafkaClient } from '../start/kafka-gauges.ts'
import type { ConnectionLimits } from '../start/connection-limits.ts'
import type { Outbound } from '../start/outbound.ts'
import type { RecordIntake } from './record-intake.ts'
import type { Replays } from './open-replays.ts'
import type { Retentions } from './retentions.ts'
import type { RetryTier } from './retry-tiers.ts'
import { topicNames } from '../start/settings.ts'
import type { Stalls } from '../start/stalls.ts'
import type { GroupConsumer } from '../../kafka/group/consumer.ts'
import {
  showBehind,
  showFailing,
  showOpenHooks,
  showRefusing,
  showRetentionUsed,
  showOldestUnsettled,
  showByTopic,
} from '../../telemetry/show-state.ts'

/** The parts of a member from which its gauges are read. */
export type ShownMember = {
  readonly config: Config
  readonly catalog: () => Catalog
  readonly stalls: Stalls
  readonly pipeline: Pipeline
  readonly outbound: Pick<Outbound, 'open'>
  readonly consumer: GroupConsumer
  readonly producer: Pick<RecordProducer, 'failing'>
  readonly intake: RecordIntake
  readonly retentions: Retentions
  readonly tiers: readonly RetryTier[]
  readonly waiting: Pick<WaitingQueues, 'counts' | 'indexBytes' | 'oldestMs'>
  readonly audiences: AudienceUnits
  readonly marks: BackfillMarks
  readonly firstSyncs: FirstSyncs
  readonly replays: Replays
  readonly refusals: Refusals | undefined
  readonly answers: HookAnswers
  readonly worst: WorstFailing
  /** The detection of repeated messages. If `undefined`, repeats are delivered. */
  readonly repeats: Repeats | undefined
}

/** Sets the gauges of a member's limits, which never change. */
export function showLimits(
  metrics: WorkerMetrics,
  { delivery }: Config,
  { maxInFlight, bulkhead }: ConnectionLimits,
): void {
  metrics.inFlightLimit.set(maxInFlight)
  metrics.pacedInFlightLimit.set(bulkhead.maxInFlight)
  metrics.heldRecordsLimit.set(delivery.bufferRecords)
  metrics.heldBytesLimit.set(delivery.bufferBytes)
}

export function showMember(metrics: WorkerMetrics, member: ShownMember): void {
  showDeliveries(metrics, member)
  // Partitions that wait for their start are left out, because nothing is known of them yet. A partition
  // waits, for example, until the state of its unit is read.
  const partitions = [...member.consumer.partitions].filter(({ isWaiting }) => !isWaiting)
  showPartitions(metrics, member, partitions)
  showTiers(metrics, partitions)
  showWaiting(metrics, member)
  showUnits(metrics, member)
  showRefusing(metrics, member.refusals?.lasting() ?? [])
  showKafkaClient(metrics, member.config)
  metrics.removedDestinations.look(member.catalog().destinations, Date.now())
  metrics.repeatsRemembered.set(member.repeats?.count ?? 0)
  metrics.repeatsReach.set((member.repeats?.reachMs(Date.now()) ?? 0) / 1_000)
}

function showDeliveries(metrics: WorkerMetrics, member: ShownMember): void {
  const { pipeline, outbound, intake, stalls, answers, worst, catalog } = member
  metrics.ruleSeconds.reset()
  metrics.ruleSeconds.inc(pipeline.ruleTime.totalMs / 1_000)
  metrics.inFlight.set(pipeline.inFlight)
  metrics.queued.set(pipeline.queued)
  metrics.idleConnections.set(outbound.open.idle)
  metrics.pacedHooks.set(pipeline.paced.hooks)
  metrics.pacedInFlight.set(pipeline.paced.inFlight)
  metrics.pacedQueued.set(pipeline.paced.queued)
  metrics.stalled.set(stalls.stalledBy === '' ? 0 : 1)
  metrics.heldRecords.set(pipeline.held.records + intake.held.records)
  metrics.heldBytes.set(pipeline.held.bytes + intake.held.bytes)
  metrics.waitingForSchema.set(intake.held.partitions)
  const open = pipeline.openHooks()
  showOpenHooks(metrics, open)
  showFailing(metrics, worst.choose(answers.failing(open, catalog()), Date.now()))
}

type PartitionState = GroupConsumer['partitions'] extends Iterable<infer State> ? State : never
type Partitions = readonly PartitionState[]

function showPartitions(
  metrics: WorkerMetrics,
  { config, consumer, producer, retentions, tiers }: ShownMember,
  partitions: Partitions,
): void {
  const { deadLetters, waiting, waitingMarks } = topicNames(config)
  const shortNameOf = (topic: string): string => shortTopicName(topic, config.kafka.topicPrefix)
  const { lastCommitMs } = consumer
  // If the clock was set back, the last commit lies in the future.
  metrics.commitAge.set(lastCommitMs === 0 ? 0 : Math.max(0, Date.now() - lastCommitMs) / 1_000)
  metrics.lag.reset()
  // What waits in the queues of destinations is no lag.
  const read = partitions.filter(({ topic }) => topic !== waiting)
  for (const { topic, id, lag } of read) metrics.lag.set({ topic, partition: id }, lag)
  const nowMs = Date.now()
  showRetentionUsed(metrics, partitions, { retentions: retentions.current, shortNameOf, nowMs })
  showOldestUnsettled(metrics, partitions, shortNameOf)
  showByTopic(metrics.partitionsInTrouble, consumer.troubled, shortNameOf)
  showByTopic(metrics.fullWindows, fullWindows(read), shortNameOf)
  // Each of these topics gets a series, even with 0, because an alert needs the series before the first
  // partition fails.
  const written = [deadLetters, waiting, waitingMarks, ...tiers.map(({ topic }) => topic)]
  const failing = new Map([...written.map((topic) => [topic, 0] as const), ...producer.failing])
  showByTopic(metrics.failingPartitions, failing, shortNameOf)
}

/** The number of partitions whose window is full, by topic. */
function fullWindows(partitions: Partitions): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { topic, isWindowFull } of partitions) {
    counts.set(topic, (counts.get(topic) ?? 0) + (isWindowFull ? 1 : 0))
  }
  return counts
}

function showWaiting(metrics: WorkerMetrics, { waiting, catalog }: ShownMember): void {
  const { destinations } = catalog()
  const byState = { on: 0, paused: 0, auto_paused: 0 }
  for (const [destinationId, count] of waiting.counts()) {
    const state = destinations.get(destinationId)?.state ?? 'off'
    // What waits for a destination that is off or removed becomes a dead letter at once, so it counts as
    // `on`.
    byState[state === 'off' ? 'on' : state] += count
  }
  for (const [state, count] of Object.entries(byState)) metrics.waitingNow.set({ state }, count)
  metrics.waitingIndexBytes.set(waiting.indexBytes)
  const { oldestMs } = waiting
  // A gauge without labels has a series from the beginning, and 0 would count as the oldest time.
  metrics.oldestWaiting.remove()
  if (oldestMs !== undefined) metrics.oldestWaiting.set(oldestMs / 1_000)
}

function showTiers(metrics: WorkerMetrics, partitions: Partitions): void {
  const tiers = new Map<string, { parked: number; dueMs: number }>()
  for (const { waitMs, lag, headDueMs } of partitions) {
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
    // If the series of several processes are merged, a 0 would count as the oldest time. So a series with 0
    // is left out.
    if (dueMs > 0) metrics.oldestDue.set({ tier }, dueMs / 1000)
  }
}

function showUnits(metrics: WorkerMetrics, member: ShownMember): void {
  const { catalog, consumer, audiences, marks, firstSyncs, replays } = member
  metrics.restoring.set(consumer.preparing.length)
  metrics.restoreRemaining.set(
    audiences.progress.reduce((sum, { at, end }) => sum + Math.max(0, end - at), 0),
  )
  showBehind(metrics, marks.behind, catalog())
  showFirstSyncs(metrics, firstSyncs.progress)
  metrics.replays.set(replays.running)
}
