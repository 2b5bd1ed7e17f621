import type { Kafka, Admin } from 'kafkajs'
import { errorCodes } from '../wire/error-codes.ts'
import { type Metadata, metadataRequest, type TopicMetadata } from '../wire/metadata-request.ts'
import { openCluster, type OpenCluster } from './open-cluster.ts'
import { ask, type WireBroker } from '../wire/wire-request.ts'

type BrokerPool = {
  readonly metadata: Metadata | null
  createBroker: (options: object) => WireBroker & { metadata(topics: readonly string[]): Promise<Metadata> }
}

export type PartwiseCluster = OpenCluster & {
  /** The last metadata that a broker has sent. `undefined` before the first answer. */
  readonly metadata: Metadata | undefined
  findBroker(nodeId: number): Promise<WireBroker & ConfigReader>
  /**
   * Asks one broker what it knows of topics. Rejects if the broker doesn't answer within `withinMs`. Leaves
   * out topics that the broker doesn't know.
   */
  topicsKnownTo(nodeId: number, names: readonly string[], withinMs: number): Promise<KnownTopics>
}

/** For each topic that a broker knows, the partitions that have a leader. */
export type KnownTopics = ReadonlyMap<string, ReadonlySet<number>>

/**
 * If a broker doesn't answer within this time, in milliseconds, the connection to the broker counts as dead.
 */
const metadataTimeoutMs = 5_000

/**
 * Opens a cluster client in which an error of one partition or topic doesn't affect the others. kafkajs
 * itself throws the first error of a partition or topic, and drops all other parts of the answer. So one
 * partition without a leader would hide all topics. In this client, a partition without a leader has the
 * leader -1, and a topic with an error has no partitions.
 */
export function openPartwiseCluster(kafka: Kafka): PartwiseCluster {
  const opened = openCluster(kafka)
  const { cluster } = opened
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares only a part of its cluster
  const { brokerPool } = cluster as unknown as { readonly brokerPool: BrokerPool }
  const create = brokerPool.createBroker
  brokerPool.createBroker = (options) => {
    const broker = create(options)
    broker.metadata = (topics) => readMetadata(broker, topics)
    return broker
  }
  const findBroker = async (nodeId: number): Promise<WireBroker & ConfigReader> => {
    const broker: object = await cluster.findBroker({ nodeId: String(nodeId) })
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares only a part of its brokers
    return broker as WireBroker & ConfigReader
  }
  return {
    cluster,
    close: () => opened.close(),
    cut: (reason) => opened.cut(reason),
    get readsFromMs() {
      return opened.readsFromMs
    },
    get metadata() {
      return brokerPool.metadata ?? undefined
    },
    findBroker,
    async topicsKnownTo(nodeId, names, withinMs) {
      const { topicMetadata } = await ask(await findBroker(nodeId), metadataRequest(names), {
        mostMs: withinMs,
      })
      return knownTopics(topicMetadata)
    },
  }
}

function knownTopics(topics: readonly TopicMetadata[]): KnownTopics {
  const known = topics.filter(
    ({ topicErrorCode }) => topicErrorCode !== errorCodes.UNKNOWN_TOPIC_OR_PARTITION,
  )
  return new Map(
    known.map(({ topic, partitionMetadata }) => [
      topic,
      new Set(partitionMetadata.flatMap(({ leader, partitionId }) => (leader >= 0 ? [partitionId] : []))),
    ]),
  )
}

async function readMetadata(broker: WireBroker, topics: readonly string[]): Promise<Metadata> {
  const metadata = await ask(broker, metadataRequest(topics), {
    mostMs: metadataTimeoutMs,
    overEither: true,
  })
  return { ...metadata, topicMetadata: metadata.topicMetadata.map(withoutError) }
}

function withoutError(topic: TopicMetadata): TopicMetadata {
  return topic.topicErrorCode === errorCodes.NONE ? topic : { ...topic, partitionMetadata: [] }
}

/** An admin client, or a single broker of kafkajs. */
export type ConfigReader = Pick<Admin, 'describeConfigs'>
