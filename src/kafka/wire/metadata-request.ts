import { ByteReader, ByteWriter } from './bytes.ts'
import type { WireRequest } from './wire-request.ts'

/**
 * A broker's description of the cluster and its topics. It has the form in which kafkajs stores it, and in
 * addition topic ids and leader epochs. Each topic and each partition has an error code of its own. Source:
 * the Kafka protocol, Metadata API.
 */
export type Metadata = {
  readonly clientSideThrottleTime: number
  readonly brokers: readonly BrokerPlace[]
  readonly clusterId: string | null
  readonly controllerId: number
  readonly topicMetadata: readonly TopicMetadata[]
}

type BrokerPlace = {
  readonly nodeId: number
  readonly host: string
  readonly port: number
  readonly rack: string | null
}

export type TopicMetadata = {
  readonly topicErrorCode: number
  readonly topic: string
  /** The topic's id in 22 characters, as Kafka prints it. `undefined` if the broker gives topics no ids. */
  readonly topicId: string | undefined
  readonly isInternal: boolean
  readonly partitionMetadata: readonly PartitionMetadata[]
}

export type PartitionMetadata = {
  readonly partitionErrorCode: number
  readonly partitionId: number
  /** The node id of the leader. -1 while the partition has no leader. */
  readonly leader: number
  /** The leader's epoch. -1 if the broker doesn't report it. */
  readonly leaderEpoch: number
  readonly replicas: readonly number[]
  readonly isr: readonly number[]
  readonly offlineReplicas: readonly number[]
}

/** The first version in which a request can ask the broker not to create missing topics. */
const lowest = 4
const highest = 12
const flexibleFrom = 9
const withIdsFrom = 10
const noId = Buffer.alloc(16)

/** Builds a request for these topics, or for all topics if the list is empty. */
export function metadataRequest(topics: readonly string[]): WireRequest<Metadata> {
  return {
    apiKey: 3,
    apiName: 'Metadata',
    lowest,
    highest,
    flexibleFrom,
    write: (version) => write(topics, version),
    read,
  }
}

function write(topics: readonly string[], version: number): Buffer {
  const out = new ByteWriter({ isFlexible: version >= flexibleFrom })
  out.array(topics.length === 0 ? null : topics, (topic) => {
    if (version >= withIdsFrom) out.raw(noId)
    out.string(topic).tags()
  })
  const mayCreateTopics = false
  out.bool(mayCreateTopics)
  // With these flags set, the answer would list this client's rights on the cluster and on each topic.
  if (version >= 8 && version <= 10) out.bool(false)
  if (version >= 8) out.bool(false)
  return out.tags().finished()
}

function read(body: Buffer, version: number): Metadata {
  const reader = new ByteReader(body, { isFlexible: version >= flexibleFrom })
  const throttleMs = reader.int32()
  // In versions before 6, the broker itself waits for the throttle time before it answers.
  const clientSideThrottleTime = version >= 6 ? throttleMs : 0
  const brokers = reader.array(() => readBroker(reader))
  const clusterId = reader.nullableString()
  const controllerId = reader.int32()
  const topicMetadata = reader.array(() => readTopic(reader, version))
  return { clientSideThrottleTime, brokers, clusterId, controllerId, topicMetadata }
}

function readBroker(reader: ByteReader): BrokerPlace {
  const nodeId = reader.int32()
  const host = reader.string()
  const port = reader.int32()
  const rack = reader.nullableString()
  reader.tags()
  return { nodeId, host, port, rack }
}

function readTopic(reader: ByteReader, version: number): TopicMetadata {
  const topicErrorCode = reader.int16()
  const topic = reader.string()
  const topicId = version >= withIdsFrom ? topicIdOf(reader.raw(16)) : undefined
  const isInternal = reader.bool()
  const partitionMetadata = reader.array(() => readPartition(reader, version))
  if (version >= 8) reader.int32()
  reader.tags()
  return { topicErrorCode, topic, topicId, isInternal, partitionMetadata }
}

function readPartition(reader: ByteReader, version: number): PartitionMetadata {
  const int32 = (): number => reader.int32()
  const partitionErrorCode = reader.int16()
  const partitionId = reader.int32()
  const leader = reader.int32()
  const leaderEpoch = version >= 7 ? reader.int32() : -1
  const replicas = reader.array(int32)
  const isr = reader.array(int32)
  const offlineReplicas = version >= 5 ? reader.array(int32) : []
  reader.tags()
  return { partitionErrorCode, partitionId, leader, leaderEpoch, replicas, isr, offlineReplicas }
}

function topicIdOf(bytes: Buffer): string | undefined {
  return bytes.equals(noId) ? undefined : bytes.toString('base64url')
}
