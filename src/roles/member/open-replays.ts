import type { Logger } from 'pino'
import type { Catalog } from '../../catalog/catalog.ts'
import type { Config } from '../../config/schema.ts'
import { GroupLagReader } from '../../kafka/other-groups/group-lag.ts'
import { createPartitionReader } from '../../kafka/read/partition-reader.ts'
import type { RecordProducer } from '../../kafka/produce/producer.ts'
import { within } from '../../async/within.ts'
import { OtherReplays } from '../../replay/other-replays.ts'
import { ReplayRunner } from '../../replay/runner.ts'
import type { WorkerMetrics } from '../../telemetry/worker-metrics.ts'
import { createReplayObserver } from '../../telemetry/replay-observer.ts'
import { openHealthReading } from '../operations/health-reading.ts'
import { replayBacklog, replayRemainder } from './replay-remainder.ts'
import { type KafkaClient, openJobLog, openReplayReading, ownerName } from '../operations/replay-jobs.ts'
import { topicNames } from '../start/settings.ts'
import type { GroupConsumer } from '../../kafka/group/consumer.ts'

export type ReplaysOptions = {
  config: Config
  metrics: WorkerMetrics
  log: Logger
  kafka: KafkaClient
  catalog: () => Catalog
  producer: Pick<RecordProducer, 'produce'>
  group: Pick<GroupConsumer, 'isMember'>
  onFatal: (error: Error) => void
}

export type Replays = Pick<ReplayRunner, 'acquire' | 'release' | 'running' | 'stop'>

const stopWithinMs = 500

/** Opens the replays of the units that this worker owns. Stop the replays before the producer. */
export async function openReplays({
  config,
  metrics,
  log,
  kafka,
  catalog,
  producer,
  group,
  onFatal,
}: ReplaysOptions): Promise<Replays> {
  const topics = topicNames(config)
  const reader = createPartitionReader(kafka, { keepsOpen: true })
  const reading = await openReplayReading(config, log, reader)
  const lag = new GroupLagReader(kafka, config.kafka.groupId, topics.replays)
  const unread = (error: unknown) => log.debug({ err: error }, 'what waits of destinations can not be read')
  const health = openHealthReading(config, kafka, reader, unread)
  const following = { lag, topic: topics.replays, health, catalog, now: Date.now }
  const jobs = openJobLog(config, reader, {
    async write(records) {
      const results = await Promise.all(
        records.map((record) =>
          producer.produce({ ...record, topic: topics.replayJobs, partition: 0, headers: {} }),
        ),
      )
      if (results.includes('refused'))
        throw new Error(`${topics.replayJobs} does not accept even a small record`)
    },
    onOther: onFatal,
  })
  const runner = new ReplayRunner({
    owner: ownerName(),
    partitions: config.topics.partitions,
    log: jobs,
    produce: (record) => producer.produce(record),
    isOwner: () => group.isMember,
    backlog: (destinationId) => replayBacklog(following, destinationId),
    remainder: (written) => replayRemainder(following, written),
    open: ({ order }) => ({
      pieces: reading.pieces(order.selection.from, order.topicId),
      choose: reading.choose(
        { selection: order.selection, jobId: order.id, catalog },
        order.again === true ? undefined : new OtherReplays(jobs.jobs, order),
      ),
    }),
    observer: createReplayObserver({ metrics, log }),
  })
  return {
    acquire: (unit) => runner.acquire(unit),
    release: (unit) => runner.release(unit),
    get running() {
      return runner.running
    },
    async stop() {
      await runner.stop()
      reading.stop()
      await within(stopWithinMs, Promise.all([reader.stop(), lag.close()]))
    },
  }
}
