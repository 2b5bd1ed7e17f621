import type { Cluster, Kafka } from 'kafkajs'
import type { OpenCluster } from './open-cluster.ts'
import { describeErrorCode, openPartwiseCluster, type ProducedTopic, produceTo } from './partwise-cluster.ts'
import { within } from './within.ts'

/** A record whose place is known. Texts are written as UTF-8. */
export type PlacedRecord = {
  readonly key: string
  readonly value: string
  readonly headers: Readonly<Record<string, string>>
}

/** Records of one partition, in the order in which they are written. */
export type PartitionRecords = {
  readonly topic: string
  readonly partition: number
  readonly records: readonly PlacedRecord[]
}

/** What keeps Kafka from taking records of a partition; `partition` is `undefined` for all of its topic. */
export type Obstacle = {
  readonly topic: string
  readonly partition: number | undefined
  readonly reason: string
}

/**
 * Which connections records go by. A broker answers what comes by one connection in its order, and for all partitions of a request
 * at once: what is sent for a partition that may be sick goes `apart`, lest it hold up what is sent for the others.
 */
export type Road = 'main' | 'apart'

/** Writes records in batches, for one that answers for each of them and has no time to wait. It never throws. */
export type RecordSender = {
  /**
   * Sends records, those of one partition once in `batch`. Calls `onSettled` once for each of its items: without `failure` when all
   * in-sync replicas have its records, else with what Kafka or its client said; they may have been written nevertheless. That comes
   * as soon as it is known, at the latest after three seconds. Nothing is tried again.
   */
  send<T extends PartitionRecords>(
    batch: readonly T[],
    road: Road,
    onSettled: (item: T, failure: string | undefined) => void,
  ): void
  /**
   * Looks, on connections of its own, whether Kafka could take records of these topics now: each partition has a leader, and so
   * many in-sync replicas. Gives what is in the way.
   */
  obstacles(topics: readonly string[], minInsync: number): Promise<readonly Obstacle[]>
  stop(): Promise<void>
}

/** How long a broker may wait for its replicas before it says that they didn't follow. */
const replicasTimeoutMs = 1_500
/** Then an answer is given up, and the connections with it. */
const sendTimeoutMs = 3_000
const lookTimeoutMs = 3_000

/**
 * Sends by kafkajs' connections, not idempotent: one produce of a partition at a time, or what is sent again after a lost answer
 * would be out of order. `kafka` should be impatient. Rejects when no broker can be reached.
 */
export async function startRecordSender(kafka: Kafka): Promise<RecordSender> {
  const links = { main: new Link(kafka), apart: new Link(kafka) }
  let isStopped = false
  await links.main.connect()

  return {
    send(batch, road, onSettled) {
      const open = new Set(batch)
      const settle = (item: (typeof batch)[number], failure: string | undefined): void => {
        if (open.delete(item)) onSettled(item, failure)
      }
      const settleRest = (failure: string): void => {
        for (const item of open) settle(item, failure)
      }
      if (isStopped) settleRest('the sender is stopped')
      else void links[road].send(batch, settle).catch((error: unknown) => settleRest(messageOf(error)))
    },
    obstacles: (topics, minInsync) => findObstacles(kafka, topics, minInsync),
    async stop() {
      isStopped = true
      await Promise.all([links.main.close(), links.apart.close()])
    },
  }
}

type Settle<T> = (item: T, failure: string | undefined) => void

/** Connections to the brokers, which are opened anew when they seem to be dead. */
class Link {
  readonly #kafka: Kafka
  #opened: OpenCluster
  #topics = new Set<string>()

  constructor(kafka: Kafka) {
    this.#kafka = kafka
    this.#opened = openPartwiseCluster(kafka)
  }

  connect(): Promise<void> {
    return this.#opened.cluster.connect()
  }

  async close(): Promise<void> {
    await this.#opened.close()
  }

  /** Settles everything by `sendTimeoutMs`, or rejects. */
  async send<T extends PartitionRecords>(batch: readonly T[], settle: Settle<T>): Promise<void> {
    const opened = this.#opened
    const sent = this.#prepare(opened.cluster, batch).then(() => this.#sendAll(opened, batch, settle))
    try {
      if (await within(sendTimeoutMs, sent)) return
    } catch (error) {
      this.#reopen(opened, sent)
      throw error
    }
    this.#reopen(opened, sent)
    throw new Error(`no answer within ${sendTimeoutMs} ms`)
  }

  async #prepare(cluster: Cluster, batch: readonly PartitionRecords[]): Promise<void> {
    await cluster.connect()
    const missing = batch.map(({ topic }) => topic).filter((topic) => !this.#topics.has(topic))
    if (missing.length > 0) {
      await cluster.addMultipleTargetTopics(missing)
      for (const topic of missing) this.#topics.add(topic)
    }
    await cluster.refreshMetadataIfNecessary()
  }

  async #sendAll<T extends PartitionRecords>(
    opened: OpenCluster,
    batch: readonly T[],
    settle: Settle<T>,
  ): Promise<void> {
    const byLeader = Map.groupBy(batch, (item) => leaderOf(opened.cluster, item))
    const answers = [...byLeader].map(async ([leader, items]) => {
      if (leader !== undefined) return this.#sendTo(opened, leader, items, settle)
      for (const item of items) settle(item, `${placeOf(item)} has no leader`)
      this.#refresh(opened)
    })
    await Promise.all(answers)
  }

  async #sendTo<T extends PartitionRecords>(
    opened: OpenCluster,
    nodeId: string,
    items: readonly T[],
    settle: Settle<T>,
  ): Promise<void> {
    try {
      const broker = await opened.cluster.findBroker({ nodeId })
      const { topics } = await produceTo(broker, topicDataOf(items), replicasTimeoutMs)
      const codes = new Map<string, number>(
        topics.flatMap(({ topicName, partitions }) =>
          partitions.map(({ partition, errorCode }) => [`${topicName}/${partition}`, errorCode] as const),
        ),
      )
      if (items.some((item) => codes.get(placeOf(item)) !== 0)) this.#refresh(opened)
      for (const item of items) settle(item, failureOf(item, codes.get(placeOf(item))))
    } catch (error) {
      this.#refresh(opened)
      for (const item of items) settle(item, messageOf(error))
    }
  }

  /** Who leads a partition may have changed. Nobody waits for it: what failed is sent again later, if at all. */
  #refresh(opened: OpenCluster): void {
    if (opened !== this.#opened) return
    const refreshed = opened.cluster.connect().then(() => opened.cluster.refreshMetadata())
    refreshed.catch(() => this.#reopen(opened, refreshed))
  }

  /** `work`: what may be under way by the dead connections; the client goes on trying for a while, and connects again for it. */
  #reopen(dead: OpenCluster, work: Promise<unknown>): void {
    if (dead === this.#opened) {
      this.#opened = openPartwiseCluster(this.#kafka)
      this.#topics = new Set()
    }
    void dead.close()
    void work.catch(() => undefined).then(() => dead.close())
  }
}

function placeOf({ topic, partition }: PartitionRecords): string {
  return `${topic}/${partition}`
}

function leaderOf(cluster: Cluster, { topic, partition }: PartitionRecords): string | undefined {
  const found = cluster.findTopicPartitionMetadata(topic).find(({ partitionId }) => partitionId === partition)
  return found === undefined || found.leader < 0 ? undefined : String(found.leader)
}

function failureOf(item: PartitionRecords, code: number | undefined): string | undefined {
  if (code === 0) return undefined
  if (code === undefined) return `${placeOf(item)} was not acknowledged`
  return `${placeOf(item)}: ${describeErrorCode(code)}`
}

function topicDataOf(items: readonly PartitionRecords[]): ProducedTopic[] {
  const byTopic = Map.groupBy(items, ({ topic }) => topic)
  return [...byTopic].map(([topic, ofTopic]) => ({
    topic,
    partitions: ofTopic.map(({ partition, records }) => ({ partition, messages: records })),
  }))
}

async function findObstacles(
  kafka: Kafka,
  topics: readonly string[],
  minInsync: number,
): Promise<readonly Obstacle[]> {
  const opened = openPartwiseCluster(kafka)
  const inAll = (reason: string): Obstacle[] =>
    topics.map((topic) => ({ topic, partition: undefined, reason }))
  try {
    const { cluster } = opened
    const looked = cluster.connect().then(() => cluster.addMultipleTargetTopics([...topics]))
    if (!(await within(lookTimeoutMs, looked))) return inAll(`no broker answers within ${lookTimeoutMs} ms`)
    return topics.flatMap((topic) => obstaclesOf(cluster, topic, minInsync))
  } catch (error) {
    return inAll(messageOf(error))
  } finally {
    void opened.close()
  }
}

function obstaclesOf(cluster: Cluster, topic: string, minInsync: number): Obstacle[] {
  const partitions = cluster.findTopicPartitionMetadata(topic)
  if (partitions.length === 0) {
    return [{ topic, partition: undefined, reason: `${topic} does not exist, or may not be written` }]
  }
  return partitions.flatMap(({ partitionId: partition, leader, isr }) => {
    if (leader < 0) return [{ topic, partition, reason: `${topic}/${partition} has no leader` }]
    if (isr.length >= minInsync) return []
    const reason = `${topic}/${partition} has ${isr.length} in-sync replicas of ${minInsync}`
    return [{ topic, partition, reason }]
  })
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
