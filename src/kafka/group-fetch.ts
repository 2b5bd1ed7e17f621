import { setTimeout as delay } from 'node:timers/promises'
import type { Cluster } from 'kafkajs'
import {
  fetchApiKey,
  type FetchedPartition,
  type FetchPosition,
  type FetchResponse,
  fetchVersion,
  readFetchResponse,
  writeFetchRequest,
} from './fetch-message.ts'
import { FetchSession, isOfSession } from './fetch-session.ts'
import { mustJoin, watchJoins } from './group-join.ts'
import type { FetchedRecord } from './record-batch.ts'
import { kafkajsFile, replaceFile } from './kafkajs-file.ts'

/**
 * How a group's member asks the brokers for records, in place of kafkajs' own way, which sends all its partitions with every
 * request, reads all of them in every answer, and takes n² for n of them: a worker of nine topics with a hundred partitions each
 * would be busy with that alone, forty times a second. Here a fetch costs what it brings.
 */

/** What of kafkajs 2.2.4's `ConsumerGroup` is used. */
type ConsumerGroup = {
  readonly cluster: KafkajsCluster
  readonly subscriptionState: {
    readonly assignedPartitionsByTopic: Readonly<Record<string, { readonly partitions: readonly number[] }>>
    isPaused(topic: string, partition: number): boolean
  }
  /** By topic and partition, as JSON. */
  readonly seekOffset: Map<string, string> & { has(topic: string, partition: number): boolean }
  readonly offsetManager: {
    committedOffsets(): Readonly<Record<string, Readonly<Record<number, string>>>>
    nextOffset(topic: string, partition: number): { toString(): string }
  }
  readonly maxWaitTime: number
  readonly minBytes: number
  readonly maxBytes: number
  readonly maxBytesPerPartition: number
  readonly isolationLevel: number
  checkForStaleAssignment(): void
  /** Applies the seeks of these partitions, and finds out where those are that aren't known yet. */
  seekOffsets(topicPartitions: readonly { topic: string; partitions: number[] }[]): Promise<void>
  recoverFromFetch(error: unknown): Promise<void>
}

type KafkajsCluster = Omit<Cluster, 'findBroker'> & {
  readonly brokerPool: { readonly metadata: object | null }
  findBroker(node: { nodeId: string }): Promise<Broker>
}

type Broker = {
  readonly versions: Readonly<Record<number, { readonly maxVersion: number }>> | null
  readonly connectionPool: { send(protocol: object): Promise<FetchResponse> }
  disconnect(): Promise<void>
}

/** What kafkajs' runner reads of a batch. */
type Batch = {
  readonly topic: string
  readonly partition: number
  readonly highWatermark: string
  readonly messages: readonly FetchedRecord[]
  isEmpty(): boolean
  isEmptyDueToFiltering(): boolean
  firstOffset(): string | null
  lastOffset(): string
  offsetLag(): string
  offsetLagLow(): string
}

type ConsumerGroupClass = {
  readonly prototype: Parameters<typeof watchJoins>[0] & {
    fetch(this: ConsumerGroup, nodeId: string): Promise<readonly Batch[]>
  }
}

/** How long the next fetch may wait at a broker that had nothing the last time, in milliseconds. */
type LongestWait = () => number

const consumerGroupFile = 'kafkajs/src/consumer/consumerGroup.js'
const longestWaits = new WeakMap<object, LongestWait>()
/** Source: the Kafka protocol, error code REBALANCE_IN_PROGRESS. kafkajs joins when it is told so. */
const rebalanceInProgress = 27
const fetchers = new WeakMap<ConsumerGroup, Map<string, NodeFetcher>>()

/** For the consumer that has this cluster; one without it waits as long as it says to kafkajs. */
export function setLongestWait(cluster: Cluster, longestWait: LongestWait): void {
  longestWaits.set(cluster, longestWait)
}

/**
 * Puts our way to fetch in the place of kafkajs' own, and has its joins watched. Called before the first client is made; fails when
 * kafkajs has no such file.
 */
export function replaceGroupFetch(): void {
  replaceFile<ConsumerGroupClass>(consumerGroupFile, (original) => {
    const { prototype } = original
    // oxlint-disable-next-line typescript/unbound-method -- it is called on a group below
    const fetchAll = prototype.fetch
    prototype.fetch = async function fetch(nodeId) {
      if (mustJoin(this)) throw errorOf(rebalanceInProgress)
      return fetcherOf(this, nodeId, fetchAll).fetch()
    }
    watchJoins(prototype)
    return original
  })
}

function fetcherOf(
  group: ConsumerGroup,
  nodeId: string,
  fetchAll: ConsumerGroupClass['prototype']['fetch'],
): NodeFetcher {
  let ofGroup = fetchers.get(group)
  if (ofGroup === undefined) {
    ofGroup = new Map()
    fetchers.set(group, ofGroup)
  }
  let fetcher = ofGroup.get(nodeId)
  if (fetcher === undefined) {
    fetcher = new NodeFetcher(group, nodeId, () => fetchAll.call(group, nodeId))
    ofGroup.set(nodeId, fetcher)
  }
  return fetcher
}

/** What one member of a group fetches from one broker, one request after the other. */
class NodeFetcher {
  readonly #group: ConsumerGroup
  readonly #nodeId: string
  readonly #fetchAll: () => Promise<readonly Batch[]>
  readonly #session = new FetchSession()
  /** Of which metadata, and of which generation of the group, the partitions were looked at. */
  #metadata: unknown
  #offsetManager: unknown
  /** Those that the broker leads. */
  #led: readonly { readonly topic: string; readonly partitions: number[] }[] = []
  #broughtNothing = false

  constructor(group: ConsumerGroup, nodeId: string, fetchAll: () => Promise<readonly Batch[]>) {
    this.#group = group
    this.#nodeId = nodeId
    this.#fetchAll = fetchAll
  }

  async fetch(): Promise<readonly Batch[]> {
    const group = this.#group
    let isOld = false
    try {
      await group.cluster.refreshMetadataIfNecessary()
      this.#lookAround()
      await this.#locate()
      const wanted = this.#wanted()
      if (wanted.size === 0) {
        await delay(this.#longestWaitMs ?? group.maxWaitTime)
        return []
      }
      const broker = await group.cluster.findBroker({ nodeId: this.#nodeId })
      isOld = (broker.versions?.[fetchApiKey]?.maxVersion ?? 0) < fetchVersion
      if (!isOld) return this.#batchesOf(await this.#ask(broker, [...wanted.values()].flat()), wanted)
    } catch (error) {
      await group.recoverFromFetch(error)
    }
    // It recovers by itself.
    return isOld ? this.#fetchAll() : []
  }

  get #longestWaitMs(): number | undefined {
    return longestWaits.get(this.#group.cluster)?.()
  }

  /** Which of the partitions the broker leads, wherever that may have changed. */
  #lookAround(): void {
    const { cluster, offsetManager, subscriptionState } = this.#group
    const { metadata } = cluster.brokerPool
    if (metadata === this.#metadata && offsetManager === this.#offsetManager) return
    this.#group.checkForStaleAssignment()
    this.#led = Object.entries(subscriptionState.assignedPartitionsByTopic).map(([topic, { partitions }]) => {
      const leaders = new Map(
        cluster.findTopicPartitionMetadata(topic).map(({ partitionId, leader }) => [partitionId, leader]),
      )
      return {
        topic,
        partitions: partitions.filter((id) => String(leaders.get(id)) === this.#nodeId),
      }
    })
    this.#metadata = metadata
    this.#offsetManager = offsetManager
  }

  /** Applies seeks, and asks the coordinator about partitions of which the group doesn't know where it stands. */
  async #locate(): Promise<void> {
    const { seekOffset, offsetManager } = this.#group
    const committed = offsetManager.committedOffsets()
    const isUnknown = this.#led.some(({ topic, partitions }) =>
      partitions.some((partition) => committed[topic]?.[partition] === undefined),
    )
    if (isUnknown || seekOffset.size > 0) await this.#group.seekOffsets(this.#led)
  }

  /** What is read now, by topic. */
  #wanted(): Map<string, FetchPosition[]> {
    const { subscriptionState, offsetManager } = this.#group
    const committed = offsetManager.committedOffsets()
    const wanted = new Map<string, FetchPosition[]>()
    for (const { topic, partitions } of this.#led) {
      const positions: FetchPosition[] = []
      for (const partition of partitions) {
        if (committed[topic]?.[partition] === undefined) continue
        if (subscriptionState.isPaused(topic, partition)) continue
        positions.push({ topic, partition, offset: offsetManager.nextOffset(topic, partition).toString() })
      }
      if (positions.length > 0) wanted.set(topic, positions)
    }
    return wanted
  }

  async #ask(broker: Broker, wanted: readonly FetchPosition[]): Promise<FetchResponse['responses']> {
    const { maxWaitTime, minBytes, maxBytes, maxBytesPerPartition, isolationLevel } = this.#group
    const longestWaitMs = this.#broughtNothing ? this.#longestWaitMs : undefined
    try {
      const bytes = writeFetchRequest({
        ...this.#session.next(wanted),
        maxWaitMs: longestWaitMs ?? maxWaitTime,
        // After a silence the first record comes at once; from then on they come together.
        minBytes: longestWaitMs === undefined ? minBytes : 1,
        maxBytes,
        maxBytesPerPartition,
        isolationLevel,
      })
      const response = await broker.connectionPool.send(protocolOf(bytes))
      const { errorCode, responses } = response
      this.#session.answered(response)
      if (errorCode !== 0 && !isOfSession(errorCode)) throw errorOf(errorCode)
      this.#broughtNothing = responses.every(({ partitions }) =>
        partitions.every(({ messages }) => messages.length === 0),
      )
      return responses
    } catch (error) {
      this.#session.lost()
      if (error instanceof Error && error.name === 'KafkaJSConnectionClosedError') await broker.disconnect()
      throw error
    }
  }

  /** Of partitions that brought something, unless they were paused or sought meanwhile. */
  #batchesOf(
    responses: FetchResponse['responses'],
    wanted: ReadonlyMap<string, readonly FetchPosition[]>,
  ): readonly Batch[] {
    const { subscriptionState, seekOffset, offsetManager } = this.#group
    // The group has joined anew meanwhile, for another broker's sake: what was resolved and paused is of before.
    if (offsetManager !== this.#offsetManager) return []
    const batches: Batch[] = []
    for (const { topicName: topic, partitions } of responses) {
      for (const fetched of partitions) {
        const { partition, messages } = fetched
        if (messages.length === 0) continue
        if (subscriptionState.isPaused(topic, partition) || seekOffset.has(topic, partition)) continue
        const position = wanted.get(topic)?.find((one) => one.partition === partition)
        if (position !== undefined) batches.push(batchOf(position, fetched))
      }
    }
    return batches
  }
}

function protocolOf(bytes: Buffer): object {
  return {
    request: {
      apiKey: fetchApiKey,
      apiVersion: fetchVersion,
      apiName: 'Fetch',
      encode: async () => ({ buf: bytes, buffer: bytes }),
    },
    response: { decode: readFetchResponse, parse },
  }
}

/** What kafkajs makes of an answer: it throws an error of its own for the first partition that has one. */
function parse(response: FetchResponse): Promise<FetchResponse> {
  type ResponseFile = { parse(response: FetchResponse): Promise<FetchResponse> }
  return kafkajsFile<ResponseFile>('kafkajs/src/protocol/requests/fetch/v11/response.js').parse(response)
}

function errorOf(code: number): Error {
  type ErrorFile = { createErrorFromCode(code: number): Error }
  return kafkajsFile<ErrorFile>('kafkajs/src/protocol/error.js').createErrorFromCode(code)
}

/** kafkajs' own leaves out, at a price for each record, what nobody here has asked for. */
function batchOf({ topic, offset }: FetchPosition, fetched: FetchedPartition): Batch {
  const { abortedTransactions, messages } = fetched
  const isPlain =
    abortedTransactions.length === 0 &&
    Number(messages[0]?.offset) >= Number(offset) &&
    !messages.some(({ isControlRecord }) => isControlRecord)
  if (isPlain) return new PlainBatch(topic, fetched)
  type BatchClass = new (topic: string, offset: string, fetched: FetchedPartition) => Batch
  const KafkajsBatch = kafkajsFile<BatchClass>('kafkajs/src/consumer/batch.js')
  return new KafkajsBatch(topic, offset, fetched)
}

/** Records of a partition that are all to be given to the consumer, at least one. */
class PlainBatch implements Batch {
  readonly topic: string
  readonly partition: number
  readonly highWatermark: string
  readonly messages: readonly FetchedRecord[]

  constructor(topic: string, { partition, highWatermark, messages }: FetchedPartition) {
    this.topic = topic
    this.partition = partition
    this.highWatermark = highWatermark
    this.messages = messages
  }

  isEmpty(): boolean {
    return false
  }

  isEmptyDueToFiltering(): boolean {
    return false
  }

  firstOffset(): string | null {
    return this.messages[0]?.offset ?? null
  }

  lastOffset(): string {
    return this.messages.at(-1)?.offset ?? ''
  }

  /** Records of the partition behind this batch. */
  offsetLag(): string {
    return String(Number(this.highWatermark) - 1 - Number(this.lastOffset()))
  }

  /** Records of the partition behind the first of this batch. */
  offsetLagLow(): string {
    return String(Number(this.highWatermark) - 1 - Number(this.firstOffset()))
  }
}
