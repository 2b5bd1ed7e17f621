import type { Kafka } from 'kafkajs'
import { kafkajsFile } from './kafkajs-file.ts'
import { openCluster, type OpenCluster } from './open-cluster.ts'

/** What kafkajs 2.2.4 makes of a request: how it is written, and how its answer is read. */
type Protocol<T> = {
  readonly request: object
  readonly response: {
    readonly decode: (bytes: Buffer) => Promise<T>
    readonly parse: (answer: T) => Promise<T>
  }
}

type Definitions = Readonly<Record<'Metadata' | 'Produce', object>>

/** What is used of kafkajs' brokers, which it declares in part. */
type KafkajsBroker = {
  lookupRequest<T>(apiKey: number, definition: object): (options: object) => Protocol<T>
  readonly connectionPool: { send<T>(protocol: Protocol<T>): Promise<T> }
  metadata(topics: readonly string[]): Promise<Metadata>
  disconnect(): Promise<void>
}

type Metadata = { readonly topicMetadata: readonly TopicMetadata[] }
type TopicMetadata = { readonly topicErrorCode: number; readonly partitionMetadata: readonly object[] }

type BrokerPool = { createBroker: (options: object) => KafkajsBroker }

/** Records for one partition, as kafkajs writes them. */
export type ProducedTopic = {
  readonly topic: string
  readonly partitions: readonly { readonly partition: number; readonly messages: readonly object[] }[]
}

/** What a broker says of each partition that it was sent records for; `errorCode` 0: they are written. */
export type ProduceAnswer = {
  readonly topics: readonly {
    readonly topicName: string
    readonly partitions: readonly { readonly partition: number; readonly errorCode: number }[]
  }[]
}

const produceApiKey = 0
const metadataApiKey = 3

/**
 * The brokers, with errors left where they belong. kafkajs throws for the first partition or topic that an answer has an error
 * of, and nobody learns about the others: one partition without a leader would hide all topics. Here a partition without a leader
 * has the leader -1, and a topic that can't be had has no partitions.
 */
export function openPartwiseCluster(kafka: Kafka): OpenCluster {
  const opened = openCluster(kafka)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares a part of its cluster only
  const { brokerPool } = opened.cluster as unknown as { readonly brokerPool: BrokerPool }
  const create = brokerPool.createBroker
  brokerPool.createBroker = (options) => {
    const broker = create(options)
    broker.metadata = (topics) => readMetadata(broker, topics)
    return broker
  }
  return opened
}

async function readMetadata(broker: KafkajsBroker, topics: readonly string[]): Promise<Metadata> {
  const options = { topics, allowAutoTopicCreation: false }
  const metadata = await ask<Metadata>(broker, metadataApiKey, 'Metadata', options)
  return { ...metadata, topicMetadata: metadata.topicMetadata.map(withoutError) }
}

function withoutError(topic: TopicMetadata): TopicMetadata {
  return topic.topicErrorCode === 0 ? topic : { ...topic, partitionMetadata: [] }
}

/**
 * Sends records to the leader of their partitions. Resolves with what it says of each; rejects when it doesn't answer. `broker` is
 * one of a cluster's `findBroker`.
 */
export function produceTo(
  broker: object,
  topicData: readonly ProducedTopic[],
  timeoutMs: number,
): Promise<ProduceAnswer> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kafkajs declares a part of its brokers only
  const leader = broker as KafkajsBroker
  return ask<ProduceAnswer>(leader, produceApiKey, 'Produce', { acks: -1, timeout: timeoutMs, topicData })
}

async function ask<T>(
  broker: KafkajsBroker,
  apiKey: number,
  name: keyof Definitions,
  options: object,
): Promise<T> {
  const { requests } = kafkajsFile<{ requests: Definitions }>('kafkajs/src/protocol/requests/index.js')
  const { request, response } = broker.lookupRequest<T>(apiKey, requests[name])(options)
  const partwise = { decode: response.decode, parse: (answer: T) => Promise.resolve(answer) }
  try {
    return await broker.connectionPool.send({ request, response: partwise })
  } catch (error) {
    if (error instanceof Error && error.name === 'KafkaJSConnectionClosedError') await broker.disconnect()
    throw error
  }
}

/** Kafka's name of an error code, with what kafkajs says of it. */
export function describeErrorCode(code: number): string {
  type ErrorFile = { createErrorFromCode(code: number): Error & { readonly type?: string } }
  const { type, message } = kafkajsFile<ErrorFile>('kafkajs/src/protocol/error.js').createErrorFromCode(code)
  return type === undefined ? message : `${type}: ${message}`
}
