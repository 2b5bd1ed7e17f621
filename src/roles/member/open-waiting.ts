import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import type { RecordProducer } from '../../kafka/produce/producer.ts'
import { createPartitionReader } from '../../kafka/read/partition-reader.ts'
import type { WorkerMetrics } from '../../telemetry/worker-metrics.ts'
import { WaitingQueues } from '../../waiting/queues.ts'
import { type KafkaClient } from '../operations/replay-jobs.ts'
import { waitingKeptMs } from '../../topics/topic-list.ts'
import { topicNames } from '../start/settings.ts'
import type { DeliveryPort, GroupPort } from './member-ports.ts'

export type WaitingOptions = {
  readonly config: Config
  readonly metrics: WorkerMetrics
  readonly log: Logger
  readonly kafka: KafkaClient
  readonly producer: Pick<RecordProducer, 'produce' | 'produceAt'>
  readonly group: GroupPort
  readonly deliveries: DeliveryPort
  /** Returns the retention of `waiting` in milliseconds; `undefined` while it isn't known. */
  readonly retention: () => number | undefined
}

/** The most bytes that one fetch of waiting messages brings. */
const fetchBytes = 512 * 1024
/** The memory of each process for waiting messages that were fetched, in bytes. */
const cacheBytes = 96 * 1024 * 1024
const unitsAtATime = 8
/** What has waited for this part of the retention becomes a dead letter, before Kafka deletes it. */
const mostOfRetention = 0.9

/** Opens the queues of messages that wait for their turn. Stop them before the producer. */
export function openWaiting(options: WaitingOptions): WaitingQueues {
  const { config, metrics, log, kafka, producer, group, deliveries, retention } = options
  const { waiting: topic, waitingMarks: marksTopic, events } = topicNames(config)
  const reader = createPartitionReader(kafka, { keepsOpen: true, fetchBytes, atATime: unitsAtATime })
  return new WaitingQueues({
    topic,
    marksTopic,
    reader,
    producer,
    group,
    isOpen: config.delivery.waitingQueues,
    cacheBytes,
    take: (record, content, queueClass) => deliveries.pipeline.acceptWaiting(record, content, queueClass),
    hasRoom: () => deliveries.pipeline.hasRoomForWaiting,
    expire: (record, content, queueClass) => deliveries.pipeline.expireWaiting(record, content, queueClass),
    drop: (record, content, queueClass) => deliveries.pipeline.dropWaiting(record, content, queueClass),
    maxAgeMs: () => mostOfRetention * (retention() ?? waitingKeptMs),
    onWaiting: (destinationId) => deliveries.pipeline.refill(destinationId),
    onReady: (unit) => group.setPartitionFull(events, unit, false, holder),
    onLost: (count) => metrics.recordsLost.inc({ topic: 'waiting' }, count),
    log,
  })
}

/** The name under which new messages of a unit are held back until its queues are known. */
const holder = 'waiting'

/**
 * Holds back the new messages of the units whose queues aren't known yet. Otherwise they could overtake the
 * messages that wait there. Call it after each assignment.
 */
export function holdUntilKnown(
  waiting: Pick<WaitingQueues, 'isReady'>,
  group: Pick<GroupPort, 'setPartitionFull'>,
  { events, units }: { readonly events: string; readonly units: readonly number[] },
): void {
  for (const unit of units) group.setPartitionFull(events, unit, !waiting.isReady(unit), holder)
}
