import type { Logger } from 'pino'
import type { AudienceUnits } from '../../audience/unit/units.ts'
import type { Config } from '../../config/schema.ts'
import { framedTopics, shortTopicName } from '../../topics/topics.ts'
import type { Pipeline } from '../../pipeline/pipeline-ports.ts'
import type { Intake } from '../../schema-registry/decoding-intake.ts'
import type { WorkerMetrics } from '../../telemetry/worker-metrics.ts'
import type { WorkerTracing } from '../../tracing/worker-tracing.ts'
import type { GroupPort } from './member-ports.ts'
import { openIntake } from '../start/schema-registry.ts'
import { topicNames } from '../start/settings.ts'
import type { ConsumerOptions } from '../../kafka/group/consumer.ts'
import type { HeldRecord, RecordContent } from '../../message/held-record.ts'

export type RecordIntakeOptions = {
  config: Config
  metrics: WorkerMetrics
  log: Logger
  group: Pick<GroupPort, 'setPartitionFull'>
  /** The topics that the group reads. */
  subscriptions: ConsumerOptions['topics']
  audiences: AudienceUnits
  pipeline: Pipeline
  /** The tracing of the worker. If `undefined`, nothing is traced. */
  traces: WorkerTracing | undefined
}

/**
 * The part that gets a member's records first. It counts each record, and passes it to the part that handles
 * the record's topic.
 */
export type RecordIntake = Pick<Intake<HeldRecord>, 'letGoAbandoned' | 'stop' | 'held'> & {
  readonly accept: (record: HeldRecord, content: RecordContent) => void
  /** Takes a record of a retry topic before its wait is over. */
  readonly acceptRecalled: (record: HeldRecord, content: RecordContent) => void
  /** Takes a record of a retry topic whose message was given up. */
  readonly dropRecalled: (record: HeldRecord, content: RecordContent) => void
  /** Counts records that Kafka deleted before they were settled. */
  lost(topic: string, count: number): void
  /** Counts a partition whose log was replaced or has lost its last records. */
  truncated(topic: string): void
}

/** Opens the part between the consumer and the deliveries. */
export async function openRecordIntake(options: RecordIntakeOptions): Promise<RecordIntake> {
  const { config, metrics, subscriptions, traces } = options
  const shortNameOf = (topic: string): string => shortTopicName(topic, config.kafka.topicPrefix)
  const counters = new Map(
    subscriptions.map(({ topic }) => [topic, metrics.records.series({ topic: shortNameOf(topic) })]),
  )
  // The series are created with 0, because an alert needs a series even before the first event.
  for (const { topic } of subscriptions) {
    metrics.recordsLost.inc({ topic: shortNameOf(topic) }, 0)
    metrics.truncations.inc({ topic: shortNameOf(topic) }, 0)
  }
  const intake = await openDecodingIntake(options)
  function received(record: HeldRecord, { headers }: RecordContent): void {
    counters.get(record.topic)?.inc()
    if (traces !== undefined) traces.received(record, headers)
  }
  return {
    accept(record, content) {
      received(record, content)
      intake.accept(record, content)
    },
    acceptRecalled(record, content) {
      received(record, content)
      options.pipeline.acceptRecalled(record, content)
    },
    dropRecalled(record, content) {
      received(record, content)
      options.pipeline.dropWaiting(record, content)
    },
    lost: (topic, count) => metrics.recordsLost.inc({ topic: shortNameOf(topic) }, count),
    truncated: (topic) => metrics.truncations.inc({ topic: shortNameOf(topic) }),
    letGoAbandoned: () => intake.letGoAbandoned(),
    stop: () => intake.stop(),
    get held() {
      return intake.held
    },
  }
}

function openDecodingIntake(options: RecordIntakeOptions): Promise<Intake<HeldRecord>> {
  const { config, metrics, log, group, pipeline } = options
  return openIntake<HeldRecord>({
    config,
    metrics,
    log,
    topics: framedTopics(topicNames(config)),
    next: takerOf(options),
    refuse: (record, content, { reason, detail }) => pipeline.refuse(record, content, reason, detail),
    setPartitionFull: (topic, id, isFull) => group.setPartitionFull(topic, id, isFull, 'schema'),
  })
}

function takerOf({
  config,
  audiences,
  pipeline,
}: RecordIntakeOptions): (record: HeldRecord, content: RecordContent) => void {
  const topics = topicNames(config)
  return function take(record, content) {
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
        pipeline.accept(record, content)
    }
  }
}
