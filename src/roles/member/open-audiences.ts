import type { Logger } from 'pino'
import type { SpaceStanding } from '../../audience/audience-ports.ts'
import type { SyncPorts } from '../../audience/syncs/syncs.ts'
import { type AudienceUnits, createAudienceUnits } from '../../audience/unit/units.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import type { Config } from '../../config/schema.ts'
import type { createKafka } from '../../kafka/cluster/client.ts'
import { createPartitionReader, type PartitionReader } from '../../kafka/read/partition-reader.ts'
import type { RecordProducer } from '../../kafka/produce/producer.ts'
import { deletionsKeptMs } from '../../topics/topic-list.ts'
import { createAudienceObserver } from '../../telemetry/audience-observer.ts'
import type { WorkerMetrics } from '../../telemetry/worker-metrics.ts'
import { askKafka } from '../start/ask-kafka.ts'
import { topicNames } from '../start/settings.ts'
import { stateFolder } from '../start/state-folder.ts'
import type { DeliveryPort, GroupPort } from './member-ports.ts'
import { clusterIdOf } from '../../kafka/cluster/with-admin.ts'

export type AudiencesOptions = {
  config: Config
  metrics: WorkerMetrics
  log: Logger
  kafka: ReturnType<typeof createKafka>
  catalog: () => Catalog
  producer: Pick<RecordProducer, 'produce' | 'produceAt'>
  deliveries: DeliveryPort
  group: Pick<GroupPort, 'setPartitionFull' | 'endSeenMs'>
  onFatal: (error: Error) => void
  /**
   * The number of partitions before the last growth. `undefined` if the installation has never been grown.
   */
  formerPartitions: number | undefined
}

/**
 * Opens the states of audiences, and connects them to Kafka and to the deliveries. Stop `reader` first, and
 * `units` after it. Both may be stopped more than once.
 */
export async function openAudiences({
  config,
  metrics,
  log,
  kafka,
  catalog,
  producer,
  deliveries,
  group,
  onFatal,
  formerPartitions,
}: AudiencesOptions): Promise<{ units: AudienceUnits; reader: PartitionReader }> {
  const folder = stateFolder(config)
  const topics = topicNames(config)
  const logId = `${await askKafka(config, clusterIdOf(kafka))}/${topics.memberships}`
  const reader = createPartitionReader(kafka)
  const ports: SyncPorts = {
    syncTimeoutMs: config.audiences.syncTimeoutMs,
    spaceOf: (sourceId) => standingOf(catalog(), sourceId),
    async writeState(record) {
      const written = await producer.produceAt({ ...record, topic: topics.memberships, headers: {} })
      return written === 'refused' ? written : written.offset
    },
    move: (record) => producer.produce(record),
    readStates: (partition, from) => reader.read({ topic: topics.memberships, partition, from }),
    rangeOfStates: (partition) => reader.range({ topic: topics.memberships, partition }),
    haveStatesDiverged: (partition, offset, leaderEpoch) =>
      reader.hasDiverged({ topic: topics.memberships, partition, offset, leaderEpoch }),
    async firstStateMs(partition) {
      for await (const [first] of reader.read({ topic: topics.memberships, partition, from: 0 }))
        return first?.timestampMs
      return undefined
    },
    deliver: (record, identify) => deliveries.pipeline.acceptIdentify(record, identify),
    deliverDelete: (record, request) => deliveries.pipeline.acceptDelete(record, request),
    refuse: (record, content, reason, detail) => deliveries.pipeline.refuse(record, content, reason, detail),
    setUnitFull: (topic, unit, isFull) => group.setPartitionFull(topic, unit, isFull),
    endSeenMs: (unit) => group.endSeenMs(topics.audienceChanges, unit),
    fatal: onFatal,
    now: Date.now,
    monotonicMs: () => performance.now(),
    observer: createAudienceObserver({ metrics, log }),
  }
  const units = createAudienceUnits({
    folder,
    partitions: config.topics.partitions,
    formerPartitions,
    limits: config.message,
    logId,
    trustedForMs: deletionsKeptMs,
    ports,
  })
  return { units, reader }
}

function standingOf({ sources }: Catalog, sourceId: string): SpaceStanding {
  const source = sources.get(sourceId)
  if (source === undefined) return 'unknown'
  if (source.kind !== 'audiences') return 'no_space'
  return source.enabled ? 'enabled' : 'disabled'
}
