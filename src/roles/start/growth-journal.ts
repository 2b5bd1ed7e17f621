import type { Config } from '../../config/schema.ts'
import {
  decodeGrowth,
  type DecodedGrowth,
  encodeGrowth,
  faultOf,
  type Growth,
  layoutOf,
  underWay,
} from '../../growth/journal.ts'
import type { createKafka } from '../../kafka/cluster/client.ts'
import type { CopyProducer } from '../../kafka/produce/copy-writer.ts'
import { createPartitionReader } from '../../kafka/read/partition-reader.ts'
import type { KeyedRecord } from '../../message/records.ts'
import { countPartitions } from '../../topics/topic-partitions.ts'
import { askKafka } from './ask-kafka.ts'
import { topicNames } from './settings.ts'
import { StartError } from './start-error.ts'
import type { Layout } from '../../growth/plan.ts'

type Kafka = ReturnType<typeof createKafka>

const readStallMs = 10_000

/**
 * Reads how far the last run of `sluice topics grow` has got. Resolves with `undefined` if the installation
 * was never grown.
 */
export async function readGrowth(kafka: Kafka, config: Config): Promise<Growth | undefined> {
  const topic = topicNames(config).backfills
  if ((await askKafka(config, countPartitions(kafka, topic))) === undefined) return undefined
  const reader = createPartitionReader(kafka)
  let last: DecodedGrowth | undefined
  try {
    const where = { topic, partition: 0, from: 0, stallTimeoutMs: readStallMs }
    for await (const records of reader.read(where))
      for (const { key, value } of records) last = decodeGrowth(key, value) ?? last
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new StartError(`Whether this installation is being grown can not be read in ${topic}: ${reason}.`, {
      cause,
    })
  } finally {
    await reader.stop()
  }
  if (last?.ok === false) throw new StartError(`${topic} ${unknownForm}`)
  return last?.growth
}

const unknownForm =
  'tells of a growth in a form that this version does not know: run the version that has grown the installation, or a later one.'

/**
 * Yields the records of `backfills` from a reading. After the last record, calls `onOther` if a record says
 * that the installation is being grown, or has another layout than the configured layout. A growth begins
 * only while the group has no members. So if a worker reads such a record, the worker was out of the group,
 * for example because it was suspended. It must end, because it would write retries to topics that nobody
 * reads any more.
 */
export async function* refusingOtherLayout(
  reading: AsyncIterable<readonly KeyedRecord[]>,
  configured: Layout,
  onOther: (error: Error) => void,
): AsyncGenerator<readonly KeyedRecord[], void> {
  let last: DecodedGrowth | undefined
  for await (const records of reading) {
    for (const { key, value } of records) last = decodeGrowth(key, value) ?? last
    yield records
  }
  const fault = last?.ok === false ? `The topic backfills ${unknownForm}` : faultOf(last?.growth, configured)
  if (last !== undefined && fault !== undefined) onOther(new Error(fault))
}

/**
 * Throws if the layout of the installation isn't the configured layout, or if the installation is being
 * grown. If a role ran in these cases, it would lose records or send them twice. Returns the number of
 * partitions before the last growth, or `undefined` if the last growth isn't complete or there was none.
 */
export async function refuseOtherLayout(kafka: Kafka, config: Config): Promise<number | undefined> {
  const growth = await readGrowth(kafka, config)
  const fault = faultOf(growth, config.topics)
  if (fault !== undefined) throw new StartError(fault)
  return growth?.state === 'grown' ? growth.from.partitions : undefined
}

/**
 * Throws while the installation is being grown. This is for commands that depend on the actual number of
 * partitions of the topics. The configured layout isn't compared. Returns the layout in force, or `undefined`
 * if the installation was never grown.
 */
export async function refuseWhileGrowing(kafka: Kafka, config: Config): Promise<Layout | undefined> {
  const growth = await readGrowth(kafka, config)
  if (growth?.state === 'copying' || growth?.state === 'switching') throw new StartError(underWay(growth))
  return layoutOf(growth)
}

/** Writes how far `sluice topics grow` has got. Resolves when all in-sync replicas have the record. */
export async function writeGrowth(producer: CopyProducer, config: Config, growth: Growth): Promise<void> {
  const writer = producer.to(topicNames(config).backfills)
  await writer.write({ partition: 0, ...encodeGrowth(growth), headers: {}, timestampMs: undefined })
  await writer.flush()
}
